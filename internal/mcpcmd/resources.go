package mcpcmd

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"

	"github.com/claudeless/claudeless/mcp"
)

type resourcesCmd struct {
	clientFlags
	Servers []string `arg:"" optional:"" name:"server" help:"Servers to look at; none = all."`
}

// templateReport is a resource template and whose it is.
type templateReport struct {
	Server   string          `json:"server"`
	Template json.RawMessage `json:"template"`
}

// Run lists what the servers that are there offer and fails if some are not.
func (c *resourcesCmd) Run(ctx context.Context, o *Options) error {
	m, stop, err := c.open(ctx, o, c.Servers...)
	if err != nil {
		return err
	}
	defer stop()
	resources, err := m.Resources("")
	if err != nil {
		return err
	}
	templates := []templateReport{}
	servers := m.Servers()
	for _, st := range servers {
		if st.Status != "connected" {
			continue
		}
		all, err := m.ResourceTemplates(ctx, st.Name)
		if err != nil {
			fmt.Fprintf(o.Stderr, "MCP server '%s': listing resource templates: %v\n", st.Name, err)
		}
		for _, t := range all {
			templates = append(templates, templateReport{st.Name, t})
		}
	}
	if c.JSON {
		err = printJSON(o.Stdout, map[string]any{"resources": append([]mcp.Resource{}, resources...), "resourceTemplates": templates})
	} else {
		printResources(o.Stdout, resources, templates)
	}
	if err == nil {
		err = missing(servers)
	}
	return err
}

func printResources(w io.Writer, resources []mcp.Resource, templates []templateReport) {
	for _, r := range resources {
		describe(w, r.Server+"  "+r.URI, r.Name)
	}
	for _, t := range templates {
		var def struct {
			URI  string `json:"uriTemplate"`
			Name string `json:"name"`
		}
		if json.Unmarshal(t.Template, &def) == nil {
			describe(w, t.Server+"  "+def.URI, def.Name+" (template)")
		}
	}
}

type readCmd struct {
	clientFlags
	Server string `arg:"" help:"Name of the server."`
	URI    string `arg:"" help:"URI of the resource."`
}

// resourceContent is one part of a resource as it comes.
type resourceContent struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType"`
	Text     string  `json:"text"`
	Blob     *string `json:"blob"`
}

// Run writes the content itself, binary content too.
func (c *readCmd) Run(ctx context.Context, o *Options) error {
	m, stop, err := c.one(ctx, o, c.Server)
	if err != nil {
		return err
	}
	defer stop()
	raw, err := m.ReadResource(ctx, c.Server, c.URI)
	if err != nil {
		return callError(err)
	}
	if c.JSON {
		_, err := fmt.Fprintf(o.Stdout, "%s\n", raw)
		return err
	}
	var result struct {
		Contents []resourceContent `json:"contents"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return fmt.Errorf("reading the result: %w", err)
	}
	for _, part := range result.Contents {
		data := []byte(part.Text)
		if part.Blob != nil {
			if data, err = base64.StdEncoding.DecodeString(*part.Blob); err != nil {
				return fmt.Errorf("reading the content of %s: %w", part.URI, err)
			}
		}
		if _, err := o.Stdout.Write(data); err != nil {
			return err
		}
	}
	return nil
}
