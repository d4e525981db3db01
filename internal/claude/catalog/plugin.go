package catalog

import (
	"bytes"
	"cmp"
	_ "embed" // for manifests.json
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// PluginHooksAndServers holds a plugin's hooks and MCP servers; the catalog itself holds its commands, skills and agents. Hooks
// and Servers contain Dir and DataDir in place of their placeholders.
type PluginHooksAndServers struct {
	Name, Dir string
	DataDir   string          // directory in which the plugin may keep files; it need not exist
	ID        string          // name@marketplace; "inline" instead of the marketplace for --plugin-dir
	Hooks     json.RawMessage // an object, keyed by event, as in settings files; nil means none
	Servers   json.RawMessage // an object, keyed by name, as in .mcp.json; nil means none
}

// Placeholders in a plugin's files for its directory and for that of its data.
const pluginRootVariable, pluginDataVariable = "${CLAUDE_PLUGIN_ROOT}", "${CLAUDE_PLUGIN_DATA}"

// Environ returns the variables that the plugin's hooks and servers get. It creates the directory of the plugin's data (errors are ignored).
func (p PluginHooksAndServers) Environ() map[string]string {
	_ = os.MkdirAll(p.DataDir, 0o777)
	return map[string]string{"CLAUDE_PLUGIN_ROOT": p.Dir, "CLAUDE_PLUGIN_DATA": p.DataDir}
}

const pluginManifestFile = ".claude-plugin/plugin.json"

// AddPlugins loads the plugins in dirs that are not loaded yet. It returns their hooks and MCP servers, which the catalog does not use.
func (c *Catalog) AddPlugins(open func(dir string) fs.FS, dirs ...string) []PluginHooksAndServers {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &loader{catalog: c}
	for _, dir := range dirs {
		if !slices.ContainsFunc(c.plugins, func(p protocol.Plugin) bool { return IsPluginIn(p.Path, dir) }) {
			l.readPluginOrCollection(open(dir), dir, 0)
		}
	}
	l.commands = c.commands
	l.setSortedUniqueCommands()
	return l.parts
}

// HasPluginInEach reports whether a plugin has been loaded from each of dirs.
func (c *Catalog) HasPluginInEach(dirs ...string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !slices.ContainsFunc(dirs, func(dir string) bool {
		return !slices.ContainsFunc(c.plugins, func(p protocol.Plugin) bool { return IsPluginIn(p.Path, dir) })
	})
}

// IsPluginIn reports whether the plugin's directory is dir or a direct subdirectory of dir.
func IsPluginIn(plugin, dir string) bool { return plugin == dir || filepath.Dir(plugin) == dir }

// InitialPluginParts returns the parts of the plugins that [New] found. The parts of later plugins are returned by [Catalog.AddPlugins].
func (c *Catalog) InitialPluginParts() []PluginHooksAndServers { return c.pluginParts }

// ReadPluginServers reads a plugin. It returns its MCP servers, with the placeholder for its directory, and the errors that init would report.
func ReadPluginServers(dir string) (servers json.RawMessage, errors []protocol.PluginError) {
	c, _ := New(Options{Plugins: []string{dir}, Open: os.DirFS})
	for _, part := range c.pluginParts {
		servers = bytes.ReplaceAll(part.Servers, []byte(dir), []byte(pluginRootVariable))
	}
	return servers, c.pluginErrors
}

// readPluginOrCollection reads a plugin or a directory of plugins, which the option --plugin-dir names. flagIndex is the
// position of the option among all --plugin-dir options (observed with 2.1.330).
func (l *loader) readPluginOrCollection(tree fs.FS, dir string, flagIndex int) {
	inline := "inline[" + strconv.Itoa(flagIndex) + "]"
	if !mayBePluginCollection(tree) {
		l.readPlugin(tree, dir, inline, nil)
		return
	}
	entries, _ := fs.ReadDir(tree, ".") // cannot fail, because mayBePluginCollection has accessed the directory
	for _, e := range entries {
		if sub, err := fs.Sub(tree, e.Name()); err == nil && fileExists(sub, pluginManifestFile) {
			l.readPlugin(sub, filepath.Join(dir, e.Name()), inline, nil)
		}
	}
}

// KnownMarketplacesFile is the file in the directory [Options.Marketplaces] that lists the known marketplaces by name.
// MarketplaceManifestFile lists the plugins of a marketplace; it is relative to the directory of the marketplace.
const (
	KnownMarketplacesFile   = "known_marketplaces.json"
	MarketplaceManifestFile = ".claude-plugin/marketplace.json"
)

// MarketplaceSource says where a marketplace comes from.
type MarketplaceSource struct {
	Source string `json:"source"` // "directory"
	Path   string `json:"path"`
}

// KnownMarketplace is the entry of a marketplace in [KnownMarketplacesFile].
type KnownMarketplace struct {
	Source      MarketplaceSource `json:"source"`
	Dir         string            `json:"installLocation"`
	LastUpdated string            `json:"lastUpdated"`
}

// KnownMarketplaceJSON returns the [KnownMarketplace] of a directory as JSON.
func KnownMarketplaceJSON(dir string, updated time.Time) json.RawMessage {
	return json.RawMessage(plainjson.MarshalString(KnownMarketplace{MarketplaceSource{"directory", dir}, dir, updated.UTC().Format("2006-01-02T15:04:05.000Z")}))
}

// SaveNewMarketplaces adds marketplaces to the file of known marketplaces in marketplacesDir, unless they are already known or their
// directories contain no manifest. The real CLI does this in the background, so this session's plugins stay the same. Errors are ignored.
func SaveNewMarketplaces(marketplacesDir string, dirByName map[string]string, now time.Time) {
	if len(dirByName) == 0 {
		return // most sessions: they need not read the file
	}
	file := filepath.Join(marketplacesDir, KnownMarketplacesFile)
	known, err := plainjson.ReadFileOrEmpty(file)
	isNew := false
	for _, name := range slices.Sorted(maps.Keys(dirByName)) {
		dir := dirByName[name]
		if _, notFound := os.Stat(filepath.Join(dir, filepath.FromSlash(MarketplaceManifestFile))); err == nil && notFound == nil && known.Get(name) == nil {
			known, isNew = known.Set(name, KnownMarketplaceJSON(dir, now)), true
		}
	}
	if isNew {
		_ = known.WriteFileAtomically(file, "", 0o600)
	}
}

func (l *loader) readEnabledPlugins(o Options) {
	var known map[string]KnownMarketplace
	for _, id := range o.Enabled {
		name, shop, _ := strings.Cut(id, "@")
		var entries struct{ Plugins []plainjson.Object }
		if !readJSONFile(o.Open(o.Marketplaces), KnownMarketplacesFile, &known) || known[shop].Dir == "" ||
			!readJSONFile(o.Open(known[shop].Dir), MarketplaceManifestFile, &entries) {
			continue
		}
		for _, entry := range entries.Plugins {
			m := ownAndMarketplaceManifest{entry: entry}
			if source := m.textOf("source"); m.textOf("name") == name && filepath.IsLocal(source) {
				dir := filepath.Join(known[shop].Dir, source)
				l.readPlugin(o.Open(dir), dir, id, entry)
			}
		}
	}
}

func readJSONFile(tree fs.FS, file string, value any) (ok bool) {
	data, err := fs.ReadFile(tree, file)
	return err == nil && json.Unmarshal(data, value) == nil
}

// mayBePluginCollection reports whether tree may be a directory of plugins: it exists and contains no parts of a plugin.
func mayBePluginCollection(tree fs.FS) bool {
	parts := []string{pluginManifestFile, "commands", "agents", "skills", "hooks", "output-styles", ".mcp.json"}
	return fileExists(tree, ".") && !slices.ContainsFunc(parts, func(part string) bool { return fileExists(tree, part) })
}

func fileExists(tree fs.FS, name string) bool {
	_, err := fs.Stat(tree, name)
	return err == nil
}

// readPlugin reads the directory of one plugin. Errors mention its id, which is "name@marketplace" for an installed plugin. entry is the
// plugin's entry in the manifest of the marketplace; nil means none.
func (l *loader) readPlugin(tree fs.FS, dir, id string, entry plainjson.Object) {
	fail := func(kind, message string) {
		l.catalog.pluginErrors = append(l.catalog.pluginErrors, protocol.PluginError{Plugin: id, Type: kind, Message: message, Path: dir})
	}
	if !fileExists(tree, ".") {
		fail("path-not-found", "Path not found: "+dir)
		return
	}
	m := ownAndMarketplaceManifest{entry: entry}
	if data, err := fs.ReadFile(tree, pluginManifestFile); err == nil {
		if m.own, err = ParseManifest(data, filepath.Base(dir), filepath.Join(dir, pluginManifestFile)); err != nil {
			fail("generic-error", "Failed to load plugin: Plugin "+err.Error())
			return
		}
	}
	name := cmp.Or(m.textOf("name"), filepath.Base(dir))
	namesPart := func(key string) bool { return entry.Get(key) != nil }
	if m.own != nil && string(entry.Get("strict")) == "false" && slices.ContainsFunc([]string{"commands", "agents", "skills", "hooks", "outputStyles"}, namesPart) {
		return // the entry and the manifest are in conflict
	}
	if !strings.Contains(id, "@") {
		id = name + "@inline"
	}
	l.catalog.plugins = append(l.catalog.plugins, protocol.Plugin{Name: name, Path: dir, Source: id, Version: m.textOf("version")})
	l.plugin = pluginBeingRead{ownAndMarketplaceManifest: m, sourceDir: sourceDir{tree, dir, pluginSource}, id: id, namePrefix: name + ":", filesRead: map[string]bool{}}
	if l.catalog.options.Marketplaces != "" {
		l.plugin.dataDir = filepath.Join(l.catalog.options.Marketplaces, "data", regexp.MustCompile(`[^a-zA-Z0-9_-]`).ReplaceAllString(id, "-"))
	}
	for _, folder := range customizationFolders {
		l.readPluginComponents(folder)
	}
	l.parts = append(l.parts, PluginHooksAndServers{Name: name, Dir: dir, DataDir: l.plugin.dataDir, ID: id, Hooks: l.readPluginObjects("hooks", "hooks/hooks.json"), Servers: l.readPluginObjects("mcpServers", ".mcp.json")})
	l.plugin = pluginBeingRead{}
}

// pluginBeingRead is the plugin whose files a loader reads.
type pluginBeingRead struct {
	ownAndMarketplaceManifest
	sourceDir

	id, namePrefix string
	dataDir        string          // empty without a state directory
	place          int             // position of the path in the manifests that is being read; 0 means a default folder
	filesRead      map[string]bool // a file that several paths in the manifests contain is read once
}

// readPluginComponents reads a default folder of a plugin, unless the plugin's own manifest replaces it, and the paths in the manifests.
func (l *loader) readPluginComponents(folder string) {
	p, dir, key := &l.plugin, l.plugin.sourceDir, strings.Replace(folder, "-s", "S", 1) // outputStyles
	if p.own.Get(key) == nil || folder == "skills" {
		l.readFolder(dir, folder, folder)
	} else if fileExists(p.tree, folder) && !strings.Contains(string(p.own.Get(key)), `"./`+folder) {
		l.reportIfFromPluginDir(&l.catalog.pluginWarnings, "folder-shadowed-by-manifest", fmt.Sprintf("Default %s/ folder is ignored because the manifest sets %q", folder, key))
	}
	for i, value := range p.valuesOf(key) {
		p.place = i + 1
		given, isPath := plainjson.StringValue(value)
		name := path.Clean(given)
		info, err := fs.Stat(p.tree, name)
		switch {
		case !isPath:
			commands, _ := plainjson.Parse(value)
			l.readCommandsInManifest(commands)
		case err != nil:
			l.reportMissingPath(name, folder)
		case folder == "skills" && fileExists(p.tree, path.Join(name, "SKILL.md")):
			l.readSkill(dir, name)
		case !info.IsDir():
			l.readFile(dir, folder, path.Dir(name), name)
		}
	}
	for i, value := range p.valuesOf(key) { // folders follow, because they do not repeat files that the manifests name
		p.place = i + 1
		if given, ok := plainjson.StringValue(value); ok {
			l.readFolder(dir, folder, path.Clean(given))
		}
	}
	p.place = 0
}

// reportIfFromPluginDir adds a problem of the plugin to a list of init, which contains only those of --plugin-dir.
func (l *loader) reportIfFromPluginDir(listInInit *[]protocol.PluginError, kind, message string) {
	if strings.HasSuffix(l.plugin.id, "@inline") {
		*listInInit = append(*listInInit, protocol.PluginError{Plugin: l.plugin.id, Type: kind, Message: message})
	}
}

func (l *loader) reportMissingPath(name, component string) {
	l.reportIfFromPluginDir(&l.catalog.pluginErrors, "path-not-found", "Path not found: "+filepath.Join(l.plugin.path, name)+" ("+component+")")
}

// readCommandsInManifest reads the commands that a manifest defines by name: first those with a file, then those with a text.
func (l *loader) readCommandsInManifest(commands plainjson.Object) {
	for i, c := range commands {
		given := plainjson.DecodeIgnoringErrors[struct {
			Source, Content, Description, ArgumentHint string
		}](c.Value)
		doc, file := parseDocument([]byte(given.Content)), path.Clean(given.Source)
		if l.plugin.place = i + 1 + len(commands); given.Source != "" {
			l.plugin.place = i + 1
			if !fileExists(l.plugin.tree, file) {
				l.reportMissingPath(file, "commands")
				continue
			}
			var isNew bool
			if doc, isNew = l.readDocumentOncePerPlugin(l.plugin.tree, file); !isNew {
				continue
			}
		}
		k := l.withMetadata(doc, Command{Name: l.plugin.namePrefix + c.Key, Source: pluginSource, Path: filepath.Join(l.plugin.path, file)})
		k.HasDescription = k.HasDescription || given.Description != ""
		k.Description, k.ArgumentHint = cmp.Or(given.Description, k.Description), cmp.Or(given.ArgumentHint, k.ArgumentHint)
		l.newCommands = append(l.newCommands, k)
	}
}

// readPluginObjects returns the object under a key that a plugin's default file, its manifests and the files in its manifests form
// together; nil means none. Entries of marketplaces add servers only to plugins without a manifest.
func (l *loader) readPluginObjects(key, defaultFile string) json.RawMessage {
	p, values := l.plugin, []json.RawMessage{json.RawMessage(strconv.Quote(defaultFile))}
	manifests := p.ownAndMarketplaceManifest
	if key == "mcpServers" && p.own != nil {
		manifests.entry = nil
	}
	var all plainjson.Object
	for i, value := range append(values, manifests.valuesOf(key)...) {
		if name, isFile := plainjson.StringValue(value); isFile {
			if name = path.Clean(name); i > 0 && name == defaultFile {
				continue
			}
			value = l.readPluginObjectFile(name, key, i > 0)
		}
		object, err := plainjson.Parse(value)
		if inner, innerErr := plainjson.Parse(object.Get(key)); innerErr == nil {
			object = inner
		}
		if err != nil {
			continue
		}
		all = append(plainjson.Object{}, all...)
		for _, m := range object {
			if lists := plainjson.DecodeIgnoringErrors[[]json.RawMessage](all.Get(m.Key)); key == "hooks" && lists != nil {
				m.Value = json.RawMessage(plainjson.MarshalString(append(lists, plainjson.DecodeIgnoringErrors[[]json.RawMessage](m.Value)...)))
			}
			all = all.Set(m.Key, m.Value)
		}
	}
	if all == nil {
		return nil
	}
	return json.RawMessage(l.expandPluginDirs(string(all.Raw()), func(dir string) string { return strings.Trim(plainjson.MarshalString(dir), `"`) }))
}

// readPluginObjectFile returns the content of a file with the object under key, and reports problems of files with hooks.
func (l *loader) readPluginObjectFile(name, key string, mustExist bool) json.RawMessage {
	value, err := fs.ReadFile(l.plugin.tree, name)
	if err != nil && mustExist && key == "hooks" {
		l.reportMissingPath(name, key)
	} else if defect := plainjson.JavaScriptSyntaxErrorOf(value); err == nil && defect != nil && key == "hooks" {
		l.reportIfFromPluginDir(&l.catalog.pluginErrors, "hook-load-failed", "Hook load failed: "+strings.ReplaceAll(defect.Error(), "'", "’"))
	}
	return value
}

// expandPluginDirs replaces the placeholders of the plugin's directories; outside plugins text stays as it is.
func (l *loader) expandPluginDirs(text string, escape func(dir string) string) string {
	if l.plugin.path == "" {
		return text
	}
	return strings.NewReplacer(pluginRootVariable, escape(l.plugin.path), pluginDataVariable, escape(cmp.Or(l.plugin.dataDir, pluginDataVariable))).Replace(text)
}

//go:embed manifests.json
var manifestSchemaJSON string

// ManifestSchemas returns the schemas "plugin" and "marketplace", and "entry", that of a plugin in the manifest of a marketplace.
var ManifestSchemas = sync.OnceValue(func() plainjson.SchemaLibrary { return plainjson.MustParseSchemas(manifestSchemaJSON) })

// ownAndMarketplaceManifest describe one plugin: its own .claude-plugin/plugin.json and its entry in the manifest of a marketplace. Nil means none.
type ownAndMarketplaceManifest struct{ own, entry plainjson.Object }

// ParseManifest returns the content of a plugin's manifest, or an error with the end of the message of the real CLI.
func ParseManifest(data []byte, plugin, file string) (plainjson.Object, error) {
	kind, fault := "an invalid", ""
	if err := plainjson.JavaScriptSyntaxErrorOf(data); err != nil {
		kind, fault = "a corrupt", "JSON parse error: "+err.Error()
	} else if issues := ManifestSchemas()["plugin"].Issues(data); len(issues) > 0 {
		var texts []string
		for _, i := range issues {
			texts = append(texts, i.DottedPath()+": "+i.Message)
		}
		fault = "Validation errors: " + strings.Join(texts, ", ")
	}
	if fault != "" {
		return nil, fmt.Errorf("%s has %s manifest file at %s. %s", plugin, kind, file, fault)
	}
	return plainjson.Parse(data)
}

// textOf returns the text under a key of the own manifest, or else that of the entry.
func (m ownAndMarketplaceManifest) textOf(key string) string {
	own, _ := plainjson.StringValue(m.own.Get(key))
	entry, _ := plainjson.StringValue(m.entry.Get(key))
	return cmp.Or(own, entry)
}

// valuesOf returns the values under a key of both manifests; the elements of a list are values.
func (m ownAndMarketplaceManifest) valuesOf(key string) (values []json.RawMessage) {
	for _, manifest := range []plainjson.Object{m.own, m.entry} {
		if value := manifest.Get(key); plainjson.TypeOf(value) == "array" {
			values = append(values, plainjson.DecodeIgnoringErrors[[]json.RawMessage](value)...)
		} else if value != nil {
			values = append(values, value)
		}
	}
	return values
}
