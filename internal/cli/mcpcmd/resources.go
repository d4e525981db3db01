package mcpcmd

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"

	"github.com/claudeless/claudeless/mcp"
)

type resourcesCmd struct{ listFlags }

type templateReport struct {
	Server   string          `json:"server"`
	Template json.RawMessage `json:"template"`
}

// Run lists the resources of the connected servers and fails if some are not connected.
func (c *resourcesCmd) Run(ctx context.Context, o *Options) error {
	return c.printList(ctx, o, func(m *mcp.Manager, servers []mcp.ServerStatus) (map[string]any, func(), error) {
		resources, err := m.Resources("")
		templates := []templateReport{}
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
		report := map[string]any{"resources": append([]mcp.Resource{}, resources...), "resourceTemplates": templates}
		return report, func() { printResources(o.Stdout, resources, templates) }, err
	})
}

func printResources(w io.Writer, resources []mcp.Resource, templates []templateReport) {
	for _, r := range resources {
		printDescription(w, r.Server+"  "+r.URI, r.Name)
	}
	for _, t := range templates {
		var def struct {
			URI  string `json:"uriTemplate"`
			Name string `json:"name"`
		}
		if json.Unmarshal(t.Template, &def) == nil {
			printDescription(w, t.Server+"  "+def.URI, def.Name+" (template)")
		}
	}
}

type readResourceCmd struct {
	clientFlags
	Server string `arg:"" help:"Name of the server"`
	URI    string `arg:"" help:"URI of the resource"`
}

// resourceContent is one part of a resource, as received.
type resourceContent struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType"`
	Text     string  `json:"text"`
	Blob     *string `json:"blob"`
}

// Run writes the content itself, including binary content.
func (c *readResourceCmd) Run(ctx context.Context, o *Options) error {
	var result struct {
		Contents []resourceContent `json:"contents"`
	}
	err := c.queryServer(ctx, o, c.Server, &result, func(m *mcp.Manager) (json.RawMessage, error) {
		return m.ReadResource(ctx, c.Server, c.URI)
	})
	if err != nil {
		return err
	}
	for _, part := range result.Contents {
		data := []byte(part.Text)
		if part.Blob != nil {
			if data, err = base64.StdEncoding.DecodeString(*part.Blob); err != nil {
				return fmt.Errorf("decoding the base64 content of %s: %w", part.URI, err)
			}
		}
		if _, err := o.Stdout.Write(data); err != nil {
			return err
		}
	}
	return nil
}
