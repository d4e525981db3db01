package plugincmd

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/claude/catalog"
)

// marketplaceManifest is the content of the file that describes a marketplace in a local directory.
type marketplaceManifest struct {
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

func pluginManifestPath(dir string) string { return filepath.Join(dir, ".claude-plugin/plugin.json") }

func readMarketplace(dir string) (marketplaceManifest, error) {
	m := marketplaceManifest{dir: dir}
	data, err := os.ReadFile(marketplaceManifestPath(dir))
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err == nil && m.Name == "" {
		err = errors.New("marketplace.json has no `name`")
	}
	return m, err
}

func (m marketplaceManifest) localPlugin(name string) (marketplacePlugin, bool) {
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
	_, own := readAndValidateManifest(pluginManifestPath(p.folder), "plugin of a marketplace") // the entry of the marketplace can replace the manifest
	version, _ := plainjson.StringValue(own.Get("version"))
	p.version = cmp.Or(version, p.Version, unknownVersion)
	return p, true
}

const unknownVersion = "unknown"

func (c *command) marketplaceNamed(name string) (marketplaceManifest, error) {
	known, err := c.readConfigObject(marketplacesFile)
	if err != nil {
		return marketplaceManifest{}, err
	}
	var entry catalog.KnownMarketplace
	if json.Unmarshal(known.Get(name), &entry) != nil {
		return marketplaceManifest{}, fmt.Errorf("the marketplace %s is not known", name)
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
	known, err := c.readConfigObject(marketplacesFile)
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
	return c.writeConfigObject(marketplacesFile, known.Set(name, catalog.KnownMarketplaceJSON(dir, c.Now())))
}

func (c *command) listMarketplaces() error {
	known, err := c.readConfigObject(marketplacesFile)
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
	known, err := c.readConfigObject(marketplacesFile)
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

// validate checks a marketplace, a plugin, or the skills, agents and commands of a directory. path is the directory, or a plugin's manifest.
func (c *command) validate(path string) error {
	dir := c.absolutePath(path)
	info, err := os.Stat(dir)
	if err != nil {
		return c.printValidation(validationReport{"plugin manifest", dir, []string{"file: File not found: " + dir}, nil})
	}
	if !info.IsDir() {
		return c.validatePlugin(dir)
	}
	if _, err := os.Stat(marketplaceManifestPath(dir)); err == nil {
		return c.validateMarketplace(dir)
	}
	if _, err := os.Stat(pluginManifestPath(dir)); err == nil {
		return c.validatePlugin(pluginManifestPath(dir))
	}
	own, hasOwn := componentReports(dir, "skill", "agent", "command", "hooks")
	ofProject, hasThoseOfProject := componentReports(filepath.Join(dir, ".claude"), "skill", "agent", "command", "hooks")
	if hasOwn || hasThoseOfProject {
		return c.printValidation(slices.Concat([]validationReport{{"components in", dir, nil, nil}}, own, ofProject)...)
	}
	return c.printValidation(validationReport{"plugin manifest", dir, []string{"directory: No manifest found in directory. Expected .claude-plugin/marketplace.json or .claude-plugin/plugin.json"}, nil})
}

func (c *command) validatePlugin(file string) error {
	problems, manifest := readAndValidateManifest(file, "plugin")
	r := validationReport{"plugin manifest", file, problems, nil}
	dir := filepath.Dir(filepath.Dir(file))
	if len(problems) == 0 {
		r.problems = append(spaceInNameProblem("Plugin", "my-plugin", manifest), missingPaths(dir, manifest, "")...)
		r.warnings = append(unknownFieldWarnings("plugin", manifest), missingFieldWarnings(manifest, "")...)
	}
	components, _ := componentReports(dir, "skill", "agent", "command", "hooks", "mcp")
	return c.printValidation(append([]validationReport{r}, components...)...)
}

func (c *command) validateMarketplace(dir string) error {
	file := marketplaceManifestPath(dir)
	problems, given := readAndValidateManifest(file, "marketplace")
	if len(problems) > 0 {
		return c.printValidation(validationReport{"marketplace manifest", file, problems, nil})
	}
	problems = spaceInNameProblem("Marketplace", "my-marketplace", given)
	m, _ := readMarketplace(dir) // readAndValidateManifest has reported an error
	warnings := unknownFieldWarnings("marketplace", given)
	if m.Description == "" && m.Metadata.Description == "" {
		warnings = append(warnings, "description: No marketplace description provided. Adding a description helps users understand what this marketplace offers")
	}
	var components []validationReport
	for i, p := range m.Plugins {
		if found, ok := m.localPlugin(p.Name); ok {
			where := fmt.Sprintf("plugins[%d] plugin.json → ", i)
			if defects, own := readAndValidateManifest(pluginManifestPath(found.folder), "plugin of a marketplace"); defects == nil {
				warnings, problems = append(warnings, missingFieldWarnings(own, where)...), append(problems, missingPaths(found.folder, own, where)...)
			}
			reports, _ := componentReports(found.folder, "hooks")
			components = append(components, reports...)
		}
	}
	return c.printValidation(append([]validationReport{{"marketplace manifest", file, problems, warnings}}, components...)...)
}

// componentReports checks the components of some kinds in the default folders of a plugin, and returns the reports that are not empty.
func componentReports(dir string, kinds ...string) (reports []validationReport, hasComponents bool) {
	for _, place := range [][2]string{
		{"skill", "skills/*/SKILL.md"},
		{"agent", "agents/*.md"},
		{"agent", "agents/*/*.md"},
		{"command", "commands/*.md"},
		{"command", "commands/*/*.md"},
		{"hooks", "hooks/hooks.json"},
		{"mcp", ".mcp.json"},
	} {
		files, _ := fs.Glob(os.DirFS(dir), place[1]) // the pattern is valid
		if !slices.Contains(kinds, place[0]) {
			files = nil
		}
		for _, file := range files {
			r := validationReport{kind: place[0], file: filepath.Join(dir, file)}
			data, err := os.ReadFile(r.file)
			switch {
			case err != nil:
				r.problems = []string{"file: " + err.Error()}
			case filepath.Ext(file) == ".md":
				r.addFrontMatterFindings(data)
			default:
				r.addJSONProblems(data)
			}
			hasComponents = true
			if len(r.problems)+len(r.warnings) > 0 {
				reports = append(reports, r)
			}
		}
	}
	return reports, hasComponents
}

func (r *validationReport) addFrontMatterFindings(document []byte) {
	front := catalog.FrontMatter(document)
	switch tools := plainjson.TypeOf(encodeValue(front["allowed-tools"])); {
	case front == nil:
		r.warnings = []string{"frontmatter: No frontmatter block found. Add YAML frontmatter between --- delimiters at the top of the file to set description and other metadata."}
	case !slices.Contains([]string{"null", "string", "array"}, tools):
		r.problems = []string{"allowed-tools: allowed-tools must be a string or array of strings, got " + tools + "."}
	case front["description"] == nil:
		r.warnings = []string{"description: No description in frontmatter. A description helps users and Claude understand when to use this " + r.kind + "."}
	}
}

func (r *validationReport) addJSONProblems(data []byte) {
	effects := map[string][2]string{ // of a syntax error, and of an invalid value
		"hooks": {"At runtime this breaks the entire plugin load."},
		"mcp":   {"The plugin loader logs this at debug level and loads no servers from the file.", "The plugin loader silently drops this server at load."},
	}[r.kind]
	if err := plainjson.JavaScriptSyntaxErrorOf(data); err != nil {
		r.problems = []string{"json: Invalid JSON syntax: " + err.Error() + ". " + effects[0]}
	} else if r.kind == "mcp" {
		for _, i := range catalog.ManifestSchemas()["mcp file"].Issues(data) {
			r.problems = append(r.problems, i.DottedPath()+": "+i.Message+". "+effects[1])
		}
	}
}

// missingPaths reports the paths in a plugin's manifest that do not exist.
func missingPaths(dir string, manifest plainjson.Object, where string) (problems []string) {
	for _, key := range []string{"commands", "agents", "skills", "outputStyles", "hooks"} {
		paths := plainjson.DecodeIgnoringErrors[[]json.RawMessage](manifest.Get(key))
		for i, value := range append(paths, manifest.Get(key)) {
			name, isPath := plainjson.StringValue(value)
			if _, err := os.Stat(filepath.Join(dir, name)); isPath && err != nil {
				problems = append(problems, fmt.Sprintf("%s%s[%d]: Path not found: %s. The runtime loader will report this as a load failure.", where, key, i, name))
			}
		}
	}
	return problems
}

func readAndValidateManifest(file, schemaName string) (problems []string, manifest plainjson.Object) {
	data, err := os.ReadFile(file)
	if err == nil {
		err = plainjson.JavaScriptSyntaxErrorOf(data)
	}
	if err != nil {
		return []string{"json: Invalid JSON syntax: " + err.Error()}, nil
	}
	if plainjson.TypeOf(data) != "object" {
		return []string{"root: manifest must be an object"}, nil
	}
	manifest, _ = plainjson.Parse(data) // cannot fail for an object
	for _, i := range catalog.ManifestSchemas()[schemaName].Issues(data) {
		problems = append(problems, i.DottedPath()+": "+i.Message)
	}
	return problems, manifest
}

func unknownFieldWarnings(schemaName string, manifest plainjson.Object) (warnings []string) {
	for _, m := range manifest {
		if !slices.ContainsFunc(catalog.ManifestSchemas()[schemaName].Properties, func(p plainjson.SchemaProperty) bool { return p.Name == m.Key }) {
			warnings = append(warnings, fmt.Sprintf("%s: Unknown field '%[1]s'. Claude Code ignores it at load time.", m.Key))
		}
	}
	return warnings
}

func spaceInNameProblem(kind, example string, manifest plainjson.Object) (problems []string) {
	if strings.Contains(string(manifest.Get("name")), " ") {
		problems = append(problems, fmt.Sprintf("name: %s name cannot contain spaces. Use kebab-case (e.g., %q)", kind, example))
	}
	return problems
}

func missingFieldWarnings(manifest plainjson.Object, where string) (warnings []string) {
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

// validationReport is what is wrong with a file.
type validationReport struct {
	kind, file         string
	problems, warnings []string
}

// MarshalJSON returns the report as `claude plugin validate --json` has it.
func (r *validationReport) MarshalJSON() ([]byte, error) {
	issues := func(lines []string) []map[string]any {
		list := []map[string]any{}
		for _, line := range lines {
			path, message, _ := strings.Cut(line, ": ")
			list = append(list, map[string]any{"path": path, "message": message, "code": nil})
		}
		return list
	}
	return json.Marshal(map[string]any{"file": r.file, "type": strings.TrimSuffix(r.kind, " manifest"), "errors": issues(r.problems), "warnings": issues(r.warnings)})
}

func (c *command) printValidation(reports ...validationReport) error {
	text, hasProblems, hasWarnings := "", false, false
	list := func(mark, noun string, lines []string) {
		if len(lines) > 1 {
			noun += "s"
		}
		if len(lines) > 0 {
			text += fmt.Sprintf("%s Found %d %s:\n\n  ❯ %s\n\n", mark, len(lines), noun, strings.Join(lines, "\n  ❯ "))
		}
	}
	for _, r := range reports {
		text += "Validating " + r.kind + ": " + r.file + "\n\n"
		list("✘", "error", r.problems)
		list("⚠", "warning", r.warnings)
		hasProblems, hasWarnings = hasProblems || r.problems != nil, hasWarnings || r.warnings != nil
	}
	switch {
	case c.asJSON:
		hasFailed := hasProblems || hasWarnings && c.strict
		err := c.printJSON(map[string]any{"success": !hasFailed, "strict": c.strict, "target": reports[0].file, "manifest": &reports[0], "contents": reports[1:]})
		if hasFailed {
			err = errors.Join(err, errFailed())
		}
		return err
	case hasProblems:
		return errors.Join(c.printf("%s✘ Validation failed\n", text), errFailed())
	case hasWarnings && c.strict:
		return errors.Join(c.printf("%s✘ Validation failed (--strict treats warnings as errors)\n", text), errFailed())
	case hasWarnings:
		return c.printf("%s✔ Validation passed with warnings\n", text)
	}
	return c.printf("%s✔ Validation passed\n", text)
}
