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

type installation struct {
	Scope       string `json:"scope"`
	Path        string `json:"installPath"`
	Version     string `json:"version"`
	InstalledAt string `json:"installedAt"`
	LastUpdated string `json:"lastUpdated"`
	Project     string `json:"projectPath,omitempty"`
}

func (c *command) isForCurrentProject(i installation) bool {
	return i.Project == "" || i.Project == c.CWD
}

type pluginListEntry struct {
	ID             string `json:"id"`
	Version        string `json:"version"`
	Scope          string `json:"scope"`
	Enabled        bool   `json:"enabled"`
	Path           string `json:"installPath"`
	Folder         string `json:"readFromFolder,omitempty"`
	FolderVersion  string `json:"folderVersion,omitempty"`
	InstalledAt    string `json:"installedAt"`
	LastUpdated    string `json:"lastUpdated"`
	Project        string `json:"projectPath,omitempty"`
	ProjectEnabled bool   `json:"projectEnabled"`
}

func (p pluginListEntry) isNamed(name string) bool {
	short, _, _ := strings.Cut(p.ID, "@")
	return p.ID == name || short == name
}

// installedPlugins returns the installed plugins in the order of the file, with one entry for each scope.
func (c *command) installedPlugins() ([]pluginListEntry, error) {
	file, err := c.readObject(installedPluginsFile)
	if err != nil {
		return nil, err
	}
	list := []pluginListEntry{}
	for _, f := range objectAt(file, "plugins") {
		var entries []installation
		if json.Unmarshal(f.Value, &entries) != nil {
			continue
		}
		for _, e := range entries {
			if c.isForCurrentProject(e) {
				list = append(list, c.listEntry(f.Key, e))
			}
		}
	}
	return list, nil
}

func (c *command) listEntry(id string, e installation) pluginListEntry {
	one := pluginListEntry{
		ID: id, Version: e.Version, Scope: e.Scope, Enabled: c.isEnabled(id), Path: e.Path, InstalledAt: e.InstalledAt, LastUpdated: e.LastUpdated,
		Project: e.Project, ProjectEnabled: string(c.enabledPlugins(scopeProject).Get(id)) == "true",
	}
	name, shop, _ := strings.Cut(id, "@")
	if m, err := c.marketplaceNamed(shop); err == nil {
		if p, ok := m.plugin(name); ok {
			one.Folder, one.FolderVersion = p.folder, p.version
		}
	}
	if one.FolderVersion == unknownVersion {
		one.FolderVersion = ""
	}
	return one
}

func (c *command) listPlugins() error {
	list, err := c.installedPlugins()
	if err != nil {
		return err
	}
	if c.asJSON {
		text, err := plainjson.Indented(list)
		if err != nil {
			return err
		}
		return c.printf("%s", text)
	}
	if len(list) == 0 {
		return c.printf("No plugins installed. Use `claude plugin install` to install a plugin.\n")
	}
	var text strings.Builder
	text.WriteString("Installed plugins:\n\n")
	for _, p := range list {
		status := "✘ disabled"
		if p.Enabled {
			status = "✔ enabled"
		}
		fmt.Fprintf(&text, "  ❯ %s\n    Version: %s\n", p.ID, p.Version)
		if p.Folder != "" {
			fmt.Fprintf(&text, "    Read from: %s\n", p.Folder)
		}
		fmt.Fprintf(&text, "    Scope: %s\n    Status: %s\n\n", p.Scope, status)
	}
	return c.printf("%s", text.String())
}

// findInstalled returns the installations of the plugin with a name, with or without its marketplace.
func (c *command) findInstalled(name string) ([]pluginListEntry, error) {
	list, err := c.installedPlugins()
	list = slices.DeleteFunc(list, func(p pluginListEntry) bool { return !p.isNamed(name) })
	return slices.DeleteFunc(list, func(p pluginListEntry) bool { return p.ID != list[0].ID }), err
}

func indexOfScope(list []pluginListEntry, scope string) int {
	return slices.IndexFunc(list, func(p pluginListEntry) bool { return p.Scope == scope })
}

func (c *command) install(name string) error {
	if err := c.checkScope("."); err != nil {
		return err
	}
	c.scope = cmp.Or(c.scope, scopeUser)
	if err := c.printf("Installing plugin %q...", name); err != nil {
		return err
	}
	short, shop, _ := strings.Cut(name, "@")
	shops, err := c.readObject(marketplacesFile)
	if err != nil {
		return err
	}
	for _, f := range shops {
		if shop != "" && f.Key != shop {
			continue
		}
		m, err := c.marketplaceNamed(f.Key)
		if err != nil {
			continue // another marketplace may have the plugin
		}
		if p, ok := m.plugin(short); ok {
			return c.installFrom(m, p)
		}
	}
	where := fmt.Sprintf("marketplace %q. Your local copy may be out of date — try `claude plugin marketplace update %s`.", shop, shop)
	if shop == "" {
		where = "any configured marketplace. (The Anthropic Directory could not be checked: it could not be reached; check your network connection)"
	}
	return c.fail("Failed to install plugin %q: Plugin %q not found in %s\n", name, short, where)
}

func (c *command) installFrom(m marketplace, p plugin) error {
	id := p.Name + "@" + m.Name
	present, err := c.findInstalled(id)
	switch {
	case err != nil:
		return err
	case indexOfScope(present, c.scope) >= 0:
		return c.printf("✔ Plugin %q is already installed (scope: %s) — it loads in place from %s, so edits there take effect at the next session start or /reload-plugins\n", id, c.scope, p.folder)
	}
	dir := filepath.Join(c.Dir, "plugins", "cache", m.Name, p.Name, p.version)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.CopyFS(dir, os.DirFS(p.folder)); err != nil {
		return fmt.Errorf("installing %s: %w", id, err)
	}
	file, err := c.readObject(installedPluginsFile)
	if err != nil {
		return err
	}
	added := installation{Scope: c.scope, Path: dir, Version: p.version, InstalledAt: c.timestamp()}
	if added.LastUpdated = added.InstalledAt; c.scope != scopeUser {
		added.Project = c.CWD
	}
	plugins := objectAt(file, "plugins")
	var all []installation
	_ = json.Unmarshal(plugins.Get(id), &all) // an invalid list counts as empty
	plugins = plugins.With(id, encodeValue(append(all, added)))
	if err := c.writeObject(installedPluginsFile, plainjson.Object{{Key: "version", Value: encodeValue(2)}, {Key: "plugins", Value: encodeValue(plugins)}}); err != nil {
		return err
	}
	if err := c.setEnabled(id, true); err != nil {
		return err
	}
	end := ""
	if !c.isEnabled(id) {
		end = ". This plugin is disabled in your settings — enable it with: claude plugin enable " + id
	}
	return c.printf("✔ Successfully installed plugin: %s (scope: %s)%s\n", id, c.scope, end)
}

func (c *command) setEnabled(id string, enabled bool) error {
	return c.changeSettings(c.scope, "enabledPlugins", func(o plainjson.Object) plainjson.Object { return o.With(id, encodeValue(enabled)) })
}

// enableOrDisable enables or disables a plugin in the given scope, or in the one of highest precedence that mentions
// it.
func (c *command) enableOrDisable(name, verb string) error {
	if err := c.checkScope(""); err != nil {
		return err
	}
	list, err := c.findInstalled(name)
	if err != nil {
		return err
	}
	given, id, mentioned := c.scope, name, ""
	if len(list) > 0 {
		id = list[0].ID
	}
	for _, scope := range scopes() {
		if c.enabledPlugins(scope).Get(id) != nil {
			mentioned = scope
		}
	}
	if c.scope = cmp.Or(given, mentioned, scopeUser); mentioned == "" {
		where := "settings"
		if given == "" {
			where = "any editable settings scope"
		}
		return c.fail("Failed to %s plugin %q: Plugin %q not found in %s. Use plugin@marketplace format.", verb, name, name, where)
	}
	enabled, at := c.isEnabled(id), ""
	if given != "" {
		enabled, at = string(c.enabledPlugins(given).Get(id)) == "true", " at "+given+" scope"
	}
	switch {
	case enabled == (verb == "enable"):
		return c.fail("Failed to %s plugin %q: Plugin %q is already %sd%s", verb, name, name, verb, at)
	case given != "" && len(list) > 0 && indexOfScope(list, given) < 0:
		return c.fail("Failed to %s plugin %q: Plugin %q is installed at %[4]s scope, not %[5]s. Use --scope %[4]s or omit --scope to auto-detect.", verb, name, name, list[0].Scope, given)
	}
	if err := c.setEnabled(id, verb == "enable"); err != nil {
		return err
	}
	short, _, _ := strings.Cut(id, "@")
	return c.printf("✔ Successfully %sd plugin: %s (scope: %s)\n", verb, short, c.scope)
}

// update reports that a plugin is read from its directory, so that there is no other version.
func (c *command) update(name string) error {
	if err := c.checkScope(", managed"); err != nil {
		return err
	}
	list, err := c.findInstalled(name)
	if err != nil {
		return err
	}
	at, where := "", ""
	if c.scope != "" {
		at, where = " at "+c.scope+" scope", " at scope "+c.scope
		list = slices.DeleteFunc(list, func(p pluginListEntry) bool { return p.Scope != c.scope })
		if c.scope != scopeUser {
			where += " (" + c.CWD + ")"
		}
	}
	if err := c.printf("Checking for updates for plugin %q%s…\n", name, at); err != nil {
		return err
	}
	if len(list) == 0 {
		return c.fail("Failed to update plugin %q: Plugin %q is not installed%s", name, name, where)
	}
	short, _, _ := strings.Cut(list[0].ID, "@")
	return c.printf("%[1]s is read from its folder, %[2]s: nothing to update. Edits there take effect at the next session start or /reload-plugins.\n"+
		"✔ %[1]s is already at the latest version (%[3]s).\n", short, list[0].Folder, list[0].Version)
}

// uninstall removes a plugin from a scope. As in the real CLI, the files of a plugin stay even when no scope has it any
// more; they are then marked with the time.
func (c *command) uninstall(name string) error {
	if err := c.checkScope("."); err != nil {
		return err
	}
	c.scope = cmp.Or(c.scope, scopeUser)
	list, err := c.findInstalled(name)
	if err != nil {
		return err
	}
	at := indexOfScope(list, c.scope)
	switch {
	case len(list) == 0:
		return c.fail("Failed to uninstall plugin %q: Plugin %q not found in installed plugins", name, name)
	case at < 0:
		return c.fail("Failed to uninstall plugin %q: Plugin %q is not installed in %s scope. Use --scope to specify the correct scope.", name, name, c.scope)
	}
	p := list[at]
	file, err := c.readObject(installedPluginsFile)
	if err != nil {
		return err
	}
	plugins := objectAt(file, "plugins")
	var left []installation
	_ = json.Unmarshal(plugins.Get(p.ID), &left) // installedPlugins has read it
	left = slices.DeleteFunc(left, func(e installation) bool { return e.Scope == c.scope && c.isForCurrentProject(e) })
	if plugins = plugins.With(p.ID, encodeValue(left)); len(left) == 0 {
		plugins = plugins.Without(p.ID)
	}
	if err := c.writeObject(installedPluginsFile, file.With("plugins", encodeValue(plugins))); err != nil {
		return err
	}
	if err := c.changeSettings(c.scope, "enabledPlugins", func(o plainjson.Object) plainjson.Object { return o.Without(p.ID) }); err != nil {
		return err
	}
	short, _, _ := strings.Cut(p.ID, "@")
	if len(left) == 0 {
		mark := fmt.Append(nil, c.Now().UnixMilli())
		if err := os.WriteFile(filepath.Join(p.Path, ".orphaned_at"), mark, 0o600); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return c.printf("✔ Successfully uninstalled plugin: %s (scope: %s)\n", short, c.scope)
}
