package plugincmd

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// marketplace is the file of a marketplace that is a local directory.
type marketplace struct {
	Name        string          `json:"name"`
	Owner       json.RawMessage `json:"owner"`
	Description string          `json:"description"`
	Metadata    struct {
		Description string `json:"description"`
	} `json:"metadata"`
	Plugins []plugin `json:"plugins"`

	dir string
}

// plugin is an entry of a marketplace.
type plugin struct {
	Name    string          `json:"name"`
	Source  json.RawMessage `json:"source"`
	Version string          `json:"version"`

	folder, version string
}

type manifest struct {
	Name        string          `json:"name"`
	Version     string          `json:"version"`
	Description string          `json:"description"`
	Author      json.RawMessage `json:"author"`
}

func marketplaceFile(dir string) string {
	return filepath.Join(dir, ".claude-plugin", "marketplace.json")
}

func manifestFile(dir string) string { return filepath.Join(dir, ".claude-plugin", "plugin.json") }

func readMarketplace(dir string) (marketplace, error) {
	m := marketplace{dir: dir}
	data, err := os.ReadFile(marketplaceFile(dir))
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err == nil && m.Name == "" {
		err = errors.New("the marketplace has no name")
	}
	return m, err
}

func readManifest(dir string) (manifest, error) {
	var m manifest
	data, err := os.ReadFile(manifestFile(dir))
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	return m, err
}

// plugin finds a plugin that is a directory of the marketplace.
func (m marketplace) plugin(name string) (plugin, bool) {
	i := slices.IndexFunc(m.Plugins, func(p plugin) bool { return p.Name == name })
	if i < 0 {
		return plugin{}, false
	}
	p := m.Plugins[i]
	var source string
	if json.Unmarshal(p.Source, &source) != nil || !filepath.IsLocal(source) {
		return plugin{}, false
	}
	p.folder = filepath.Join(m.dir, source)
	own, _ := readManifest(p.folder) // the entry of the marketplace can replace it
	p.version = cmp.Or(own.Version, p.Version, "unknown")
	return p, true
}

type source struct {
	Source string `json:"source"`
	Path   string `json:"path"`
}

type knownMarketplace struct {
	Source      source `json:"source"`
	Location    string `json:"installLocation"`
	LastUpdated string `json:"lastUpdated"`
}

func (c *command) marketplaceNamed(name string) (marketplace, error) {
	known, err := c.readObject(marketplacesFile)
	if err != nil {
		return marketplace{}, err
	}
	var entry knownMarketplace
	if json.Unmarshal(known.Get(name), &entry) != nil {
		return marketplace{}, fmt.Errorf("the marketplace %s is not known", name)
	}
	return readMarketplace(entry.Location)
}

func (c *command) addMarketplace(given string) error {
	dir := c.absolutePath(given)
	switch _, err := os.Stat(dir); {
	case err != nil && !strings.HasPrefix(given, ".") && !filepath.IsAbs(given):
		return ErrNotSimulated // a repository or an address
	case err != nil:
		return c.fail("Path does not exist: %s", dir)
	}
	if err := c.printf("Adding marketplace…"); err != nil {
		return err
	}
	m, err := readMarketplace(dir)
	if err != nil {
		return c.fail("Failed to add marketplace: %v", err)
	}
	known, err := c.readObject(marketplacesFile)
	if err != nil {
		return err
	}
	if known.Get(m.Name) != nil {
		return c.printf("✔ Marketplace '%s' already on disk — declared in user settings\n", m.Name)
	}
	if err := c.saveKnownMarketplace(known, m.Name, source{"directory", dir}); err != nil {
		return err
	}
	entry := encodeValue(struct {
		Source source `json:"source"`
	}{source{"directory", dir}})
	if err := c.changeSettings("extraKnownMarketplaces", func(o plainjson.Object) plainjson.Object { return o.With(m.Name, entry) }); err != nil {
		return err
	}
	return c.printf("✔ Successfully added marketplace: %s (declared in user settings)\n", m.Name)
}

// saveKnownMarketplace writes an entry of the known marketplaces, updated now.
func (c *command) saveKnownMarketplace(known plainjson.Object, name string, from source) error {
	return c.writeObject(marketplacesFile, known.With(name, encodeValue(knownMarketplace{from, from.Path, c.timestamp()})))
}

func (c *command) listMarketplaces() error {
	known, err := c.readObject(marketplacesFile)
	if err != nil {
		return err
	}
	type row struct {
		Name     string `json:"name"`
		Source   string `json:"source"`
		Path     string `json:"path"`
		Location string `json:"installLocation"`
	}
	rows := []row{}
	var text strings.Builder
	text.WriteString("Configured marketplaces:\n\n  ❯ anthropic-plugin-directory\n    Source: Built in (Anthropic Directory)\n\n")
	for _, f := range known {
		var entry knownMarketplace
		if json.Unmarshal(f.Value, &entry) != nil {
			continue
		}
		rows = append(rows, row{f.Key, entry.Source.Source, entry.Source.Path, entry.Location})
		text.WriteString("  ❯ " + f.Key + "\n    Source: Folder (" + entry.Source.Path + ")\n\n")
	}
	if !c.asJSON {
		return c.printf("%s", text.String())
	}
	list, err := encodeIndented(rows)
	if err != nil {
		return err
	}
	return c.printf("%s\n", list)
}

// updateMarketplaces reads marketplaces again; an empty name means all of them.
func (c *command) updateMarketplaces(name string) error {
	known, err := c.readObject(marketplacesFile)
	if err != nil {
		return err
	}
	if name != "" && known.Get(name) == nil {
		return c.fail("Failed to update marketplace(s): Marketplace '%s' not found", name)
	}
	n := 0
	for _, f := range known {
		var entry knownMarketplace
		if name != "" && f.Key != name || json.Unmarshal(f.Value, &entry) != nil {
			continue
		}
		if err := c.saveKnownMarketplace(known, f.Key, entry.Source); err != nil {
			return err
		}
		n++
	}
	if name != "" {
		return c.printf("Updating marketplace: %s...Validating local marketplace\n✔ Successfully updated marketplace: %[1]s\n", name)
	}
	noun := "marketplaces"
	if n == 1 {
		noun = "marketplace"
	}
	return c.printf("Updating marketplaces...Anthropic Directory (built in) could not be refreshed and was skipped (see --debug)\n"+
		"✔ Successfully updated %d %s\n", n, noun)
}

func (c *command) removeMarketplace(name string) error {
	known, err := c.readObject(marketplacesFile)
	if err != nil {
		return err
	}
	if known.Get(name) == nil {
		return c.fail("Failed to remove marketplace: Marketplace '%s' not found", name)
	}
	left := known.Without(name)
	if left == nil {
		left = plainjson.Object{}
	}
	if err := c.writeObject(marketplacesFile, left); err != nil {
		return err
	}
	if err := c.changeSettings("extraKnownMarketplaces", func(o plainjson.Object) plainjson.Object { return o.Without(name) }); err != nil {
		return err
	}
	return c.printf("✔ Successfully removed marketplace: %s\n", name)
}

// validate checks the manifest of a marketplace or of a plugin.
func (c *command) validate(given string) error {
	dir := c.absolutePath(given)
	if _, err := os.Stat(marketplaceFile(dir)); err == nil {
		return c.validateMarketplace(dir)
	}
	file, problem := manifestFile(dir), ""
	m, err := readManifest(dir)
	if _, none := os.Stat(dir); none != nil {
		file, problem = dir, "file: File not found: "+dir
	} else if err != nil {
		problem = "json: " + err.Error()
	} else if m.Name == "" {
		problem = "name: Invalid input: expected string, received undefined"
	}
	return c.printProblems("plugin", file, problem, manifestWarnings(m, ""))
}

func (c *command) validateMarketplace(dir string) error {
	m, err := readMarketplace(dir)
	problem := ""
	if err != nil {
		problem = "json: " + err.Error()
	}
	var warnings []string
	if m.Description == "" && m.Metadata.Description == "" {
		warnings = append(warnings, "description: No marketplace description provided. Adding a description helps users understand what this marketplace offers")
	}
	for i, p := range m.Plugins {
		found, ok := m.plugin(p.Name)
		if own, err := readManifest(found.folder); ok && err == nil {
			warnings = append(warnings, manifestWarnings(own, fmt.Sprintf("plugins[%d] plugin.json → ", i))...)
		}
	}
	return c.printProblems("marketplace", marketplaceFile(dir), problem, warnings)
}

func manifestWarnings(m manifest, where string) []string {
	if m.Author != nil {
		return nil
	}
	return []string{where + "author: No author information provided. Consider adding author details for plugin attribution"}
}

// printProblems prints the problems that validation found.
func (c *command) printProblems(kind, file, problem string, warnings []string) error {
	text := "Validating " + kind + " manifest: " + file + "\n\n"
	if problem != "" {
		return errors.Join(c.printf("%s✘ Found 1 error:\n\n  ❯ %s\n\n✘ Validation failed\n", text, problem), ErrFailed)
	}
	if len(warnings) == 0 {
		return c.printf("%s✔ Validation passed\n", text)
	}
	noun := "warnings"
	if len(warnings) == 1 {
		noun = "warning"
	}
	return c.printf("%s⚠ Found %d %s:\n\n  ❯ %s\n\n✔ Validation passed with warnings\n", text, len(warnings), noun, strings.Join(warnings, "\n  ❯ "))
}
