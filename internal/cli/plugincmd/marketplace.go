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
	"github.com/claudeless/claudeless/internal/claude/catalog"
)

// marketplace is the content of the file that describes a marketplace in a local directory.
type marketplace struct {
	Name        string          `json:"name"`
	Owner       json.RawMessage `json:"owner"`
	Description string          `json:"description"`
	Metadata    struct {
		Description string `json:"description"`
	} `json:"metadata"`
	Plugins []marketplacePlugin `json:"plugins"`

	dir string
}

type marketplacePlugin struct {
	Name    string          `json:"name"`
	Source  json.RawMessage `json:"source"`
	Version string          `json:"version"`

	folder, version string
}

func marketplaceManifestPath(dir string) string {
	return filepath.Join(dir, catalog.MarketplaceManifestFile)
}

func manifestFile(dir string) string { return filepath.Join(dir, ".claude-plugin/plugin.json") }

func readMarketplace(dir string) (marketplace, error) {
	m := marketplace{dir: dir}
	data, err := os.ReadFile(marketplaceManifestPath(dir))
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err == nil && m.Name == "" {
		err = errors.New("marketplace.json has no `name`")
	}
	return m, err
}

func (m marketplace) localPlugin(name string) (marketplacePlugin, bool) {
	i := slices.IndexFunc(m.Plugins, func(p marketplacePlugin) bool { return p.Name == name })
	if i < 0 {
		return marketplacePlugin{}, false
	}
	p := m.Plugins[i]
	var source string
	if json.Unmarshal(p.Source, &source) != nil || !filepath.IsLocal(source) {
		return marketplacePlugin{}, false
	}
	p.folder = filepath.Join(m.dir, source)
	_, own := readManifest(manifestFile(p.folder), "plugin of a marketplace") // the entry of the marketplace can replace the manifest
	version, _ := plainjson.StringValue(own.Get("version"))
	p.version = cmp.Or(version, p.Version, unknownVersion)
	return p, true
}

const unknownVersion = "unknown"

func (c *command) marketplaceNamed(name string) (marketplace, error) {
	known, err := c.readObject(marketplacesFile)
	if err != nil {
		return marketplace{}, err
	}
	var entry catalog.KnownMarketplace
	if json.Unmarshal(known.Get(name), &entry) != nil {
		return marketplace{}, fmt.Errorf("the marketplace %s is not known", name)
	}
	return readMarketplace(entry.Dir)
}

func (c *command) addMarketplace(source string) error {
	if c.scope = cmp.Or(c.scope, scopeUser); !slices.Contains(scopes(), c.scope) {
		return c.fail("Unknown scope '%s'. Use one of: user, project, local", c.scope)
	}
	dir := c.absolutePath(source)
	switch _, err := os.Stat(dir); {
	case err != nil && !strings.HasPrefix(source, ".") && !filepath.IsAbs(source):
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
	present := known.Get(m.Name) != nil
	if !present {
		err = c.saveKnownMarketplace(known, m.Name, dir)
	}
	if err != nil {
		return err
	}
	entry := encodeValue(map[string]catalog.MarketplaceSource{"source": {Source: "directory", Path: dir}})
	if err := c.changeSettings(c.scope, "extraKnownMarketplaces", func(o plainjson.Object) plainjson.Object { return o.Set(m.Name, entry) }); err != nil {
		return err
	}
	if present {
		return c.printf("✔ Marketplace '%s' already on disk — declared in %s settings\n", m.Name, c.scope)
	}
	return c.printf("✔ Successfully added marketplace: %s (declared in %s settings)\n", m.Name, c.scope)
}

func (c *command) saveKnownMarketplace(known plainjson.Object, name, dir string) error {
	return c.writeObject(marketplacesFile, known.Set(name, catalog.NewKnownMarketplace(dir, c.Now())))
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
	text.WriteString("Configured marketplaces:\n\n  ❯ " + builtinMarketplace + "\n    Source: Built in (Anthropic Directory)\n\n")
	for _, f := range known {
		var entry catalog.KnownMarketplace
		if json.Unmarshal(f.Value, &entry) != nil {
			continue
		}
		rows = append(rows, row{f.Key, entry.Source.Source, entry.Source.Path, entry.Dir})
		text.WriteString("  ❯ " + f.Key + "\n    Source: Folder (" + entry.Source.Path + ")\n\n")
	}
	if c.asJSON {
		return c.printJSON(rows)
	}
	return c.printf("%s", text.String())
}

// builtinMarketplace is the name of the vendor's own marketplace, which is always configured. It needs a network.
const builtinMarketplace = "anthropic-plugin-directory"

// refreshMarketplaceTimestamps sets the update time of a marketplace to now; an empty name means all of them.
func (c *command) refreshMarketplaceTimestamps(name string) error {
	known, err := c.readObject(marketplacesFile)
	if err != nil {
		return err
	}
	if name != "" && known.Get(name) == nil {
		if err := c.printf("Updating marketplace: %s...\n", name); err != nil {
			return err
		}
		var available []string
		for _, f := range known {
			available = append(available, f.Key)
		}
		return c.fail("Failed to update marketplace(s): Marketplace '%s' not found. Available marketplaces: %s", name,
			strings.Join(append(available, builtinMarketplace), ", "))
	}
	n := 0
	for _, f := range known {
		var entry catalog.KnownMarketplace
		if name != "" && f.Key != name || json.Unmarshal(f.Value, &entry) != nil {
			continue
		}
		if err := c.saveKnownMarketplace(known, f.Key, entry.Source.Path); err != nil {
			return err
		}
		n++
	}
	if name != "" {
		return c.printf("Updating marketplace: %s...Validating local marketplace\n✔ Successfully updated marketplace: %[1]s\n", name)
	}
	end := fmt.Sprintf("✔ Successfully updated %d marketplaces", n)
	switch n {
	case 0:
		end = "No marketplaces needed updating"
	case 1:
		end = strings.TrimSuffix(end, "s")
	}
	return c.printf("Updating marketplaces...Anthropic Directory (built in) could not be refreshed and was skipped (see --debug)\n%s\n", end)
}

// validate checks the manifest of a marketplace or of a plugin. path is its directory or its file.
func (c *command) validate(path string) error {
	dir := c.absolutePath(path)
	info, err := os.Stat(dir)
	if err != nil {
		return c.printValidation("plugin", dir, "file: File not found: "+dir)
	}
	if !info.IsDir() {
		return c.validatePluginManifest(dir)
	}
	if _, err := os.Stat(marketplaceManifestPath(dir)); err == nil {
		return c.validateMarketplace(dir)
	}
	if _, err := os.Stat(manifestFile(dir)); err != nil {
		return c.printValidation("plugin", dir, "directory: No manifest found in directory. Expected .claude-plugin/marketplace.json or .claude-plugin/plugin.json")
	}
	return c.validatePluginManifest(manifestFile(dir))
}

func (c *command) validatePluginManifest(file string) error {
	problem, manifest := readManifest(file, "plugin")
	problem = cmp.Or(problem, spaceInNameProblem("Plugin", "my-plugin", manifest))
	return c.printValidation("plugin", file, problem, append(unknownFieldWarnings("plugin", manifest), manifestWarnings(manifest, "")...)...)
}

func (c *command) validateMarketplace(dir string) error {
	problem, given := readManifest(marketplaceManifestPath(dir), "marketplace")
	problem = cmp.Or(problem, spaceInNameProblem("Marketplace", "my-marketplace", given))
	m, _ := readMarketplace(dir) // readManifest has reported an error
	warnings := unknownFieldWarnings("marketplace", given)
	if m.Description == "" && m.Metadata.Description == "" {
		warnings = append(warnings, "description: No marketplace description provided. Adding a description helps users understand what this marketplace offers")
	}
	for i, p := range m.Plugins {
		if found, ok := m.localPlugin(p.Name); ok {
			if problem, own := readManifest(manifestFile(found.folder), "plugin of a marketplace"); problem == "" {
				warnings = append(warnings, manifestWarnings(own, fmt.Sprintf("plugins[%d] plugin.json → ", i))...)
			}
		}
	}
	return c.printValidation("marketplace", marketplaceManifestPath(dir), problem, warnings...)
}

// readManifest reads a manifest. problem describes its errors, one on each line; empty means that it has none.
func readManifest(file, schemaName string) (problem string, manifest plainjson.Object) {
	data, err := os.ReadFile(file)
	if err == nil {
		err = plainjson.SyntaxError(data)
	}
	if err != nil {
		return "json: Invalid JSON syntax: " + err.Error(), nil
	}
	if plainjson.TypeOf(data) != "object" {
		return "root: manifest must be an object", nil
	}
	manifest, _ = plainjson.Parse(data) // cannot fail for an object
	var problems []string
	for _, i := range catalog.ManifestSchemas()[schemaName].Issues(data) {
		problems = append(problems, i.DottedPath()+": "+i.Message)
	}
	return strings.Join(problems, "\n"), manifest
}

func unknownFieldWarnings(schemaName string, manifest plainjson.Object) (warnings []string) {
	for _, m := range manifest {
		if !slices.ContainsFunc(catalog.ManifestSchemas()[schemaName].Properties, func(p plainjson.SchemaProperty) bool { return p.Name == m.Key }) {
			warnings = append(warnings, fmt.Sprintf("%s: Unknown field '%[1]s'. Claude Code ignores it at load time.", m.Key))
		}
	}
	return warnings
}

func spaceInNameProblem(kind, example string, manifest plainjson.Object) string {
	if strings.Contains(string(manifest.Get("name")), " ") {
		return fmt.Sprintf("name: %s name cannot contain spaces. Use kebab-case (e.g., %q)", kind, example)
	}
	return ""
}

func manifestWarnings(manifest plainjson.Object, where string) (warnings []string) {
	for _, advice := range [][2]string{
		{"version", `No version specified. Consider adding a version following semver (e.g., "1.0.0")`},
		{"description", "No description provided. Adding a description helps users understand what your plugin does"},
		{"author", "No author information provided. Consider adding author details for plugin attribution"},
	} {
		if manifest.Get(advice[0]) == nil {
			warnings = append(warnings, where+advice[0]+": "+advice[1])
		}
	}
	return warnings
}

// printValidation prints the problems that validation found, one on each line, and the warnings.
func (c *command) printValidation(kind, file, problems string, warnings ...string) error {
	text := "Validating " + kind + " manifest: " + file + "\n\n"
	list := func(mark, noun string, lines []string) {
		if len(lines) > 1 {
			noun += "s"
		}
		text += fmt.Sprintf("%s Found %d %s:\n\n  ❯ %s\n\n", mark, len(lines), noun, strings.Join(lines, "\n  ❯ "))
	}
	if problems != "" {
		list("✘", "error", strings.Split(problems, "\n"))
		return errors.Join(c.printf("%s✘ Validation failed\n", text), errFailed())
	}
	if len(warnings) == 0 {
		return c.printf("%s✔ Validation passed\n", text)
	}
	list("⚠", "warning", warnings)
	if c.strict {
		return errors.Join(c.printf("%s✘ Validation failed (--strict treats warnings as errors)\n", text), errFailed())
	}
	return c.printf("%s✔ Validation passed with warnings\n", text)
}
