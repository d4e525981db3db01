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
	ID             string              `json:"id"`
	Version        string              `json:"version"`
	Scope          string              `json:"scope"`
	Enabled        bool                `json:"enabled"`
	Path           string              `json:"installPath"`
	Folder         string              `json:"readFromFolder,omitempty"`
	FolderVersion  string              `json:"folderVersion,omitempty"`
	InstalledAt    string              `json:"installedAt"`
	LastUpdated    string              `json:"lastUpdated"`
	Project        string              `json:"projectPath,omitempty"`
	Errors         []string            `json:"errors,omitempty"`
	ErrorDetails   []map[string]string `json:"errorDetails,omitempty"`
	Servers        json.RawMessage     `json:"mcpServers,omitempty"`
	ProjectEnabled bool                `json:"projectEnabled"`
}

func (p pluginListEntry) isNamed(name string) bool {
	short, _, _ := strings.Cut(p.ID, "@")
	return p.ID == name || short == name
}

// pluginsInstalledForThisProject returns the installed plugins, sorted by id, with one entry for each scope.
func (c *command) pluginsInstalledForThisProject() ([]pluginListEntry, error) {
	file, err := c.readConfigObject(installedPluginsFile)
	if err != nil {
		return nil, err
	}
	list := []pluginListEntry{}
	for _, f := range objectAt(file, "plugins") {
		for _, e := range plainjson.DecodeIgnoringErrors[[]installation](f.Value) {
			if c.isForCurrentProject(e) {
				list = append(list, c.listEntry(f.Key, e))
			}
		}
	}
	slices.SortStableFunc(list, func(a, b pluginListEntry) int { return cmp.Compare(a.ID, b.ID) })
	return list, nil
}

func (c *command) listEntry(id string, e installation) pluginListEntry {
	one := pluginListEntry{
		ID: id, Version: e.Version, Scope: e.Scope, Enabled: c.isEnabled(id), Path: e.Path, InstalledAt: e.InstalledAt, LastUpdated: e.LastUpdated,
		Project: e.Project, ProjectEnabled: string(c.enabledPlugins(scopeProject).Get(id)) == "true",
	}
	name, shop, _ := strings.Cut(id, "@")
	if m, err := c.marketplaceNamed(shop); err == nil {
		if p, ok := m.localPlugin(name); ok {
			one.Folder, one.FolderVersion = p.folder, p.version
		}
	}
	if one.FolderVersion == unknownVersion {
		one.FolderVersion = ""
	}
	if !one.Enabled {
		return one
	}
	dir := cmp.Or(one.Folder, one.Path)
	servers, defects := catalog.ReadPluginServers(dir)
	for _, defect := range defects {
		detail := map[string]string{"type": defect.Type, "plugin": name, "path": filepath.Join(dir, "hooks", "hooks.json")}
		if missing, found := strings.CutPrefix(strings.TrimSuffix(defect.Message, ")"), "Path not found: "); found {
			detail["path"], detail["component"], _ = strings.Cut(missing, " (")
		}
		one.Errors, one.ErrorDetails = append(one.Errors, defect.Message), append(one.ErrorDetails, detail)
	}
	one.Servers = servers
	return one
}

func (c *command) listPlugins() error {
	list, err := c.pluginsInstalledForThisProject()
	if err != nil {
		return err
	}
	if c.asJSON {
		return c.printJSON(list)
	}
	if len(list) == 0 {
		return c.printf("No plugins installed. Use `claude plugin install` to install a plugin.\n")
	}
	var text strings.Builder
	text.WriteString("Installed plugins:\n\n")
	for _, p := range list {
		status := map[bool]string{true: "✔ enabled", false: "✘ disabled"}[p.Enabled]
		if p.Errors != nil {
			status = "✘ failed to load\n    Error: " + strings.Join(p.Errors, "\n    Error: ")
		}
		fmt.Fprintf(&text, "  ❯ %s\n    Version: %s\n", p.ID, p.Version)
		if p.Folder != "" {
			fmt.Fprintf(&text, "    Read from: %s\n", p.Folder)
		}
		fmt.Fprintf(&text, "    Scope: %s\n    Status: %s\n\n", p.Scope, status)
	}
	return c.printf("%s", text.String())
}

func (c *command) installationsOfPlugin(pluginNameOrID string) ([]pluginListEntry, error) {
	list, err := c.pluginsInstalledForThisProject()
	list = slices.DeleteFunc(list, func(p pluginListEntry) bool { return !p.isNamed(pluginNameOrID) })
	return slices.DeleteFunc(list, func(p pluginListEntry) bool { return p.ID != list[0].ID }), err
}

func indexOfScope(list []pluginListEntry, scope string) int {
	return slices.IndexFunc(list, func(p pluginListEntry) bool { return p.Scope == scope })
}

func (c *command) install(name string) error {
	c.scope = cmp.Or(c.scope, scopeUser)
	if err := c.printf("Installing plugin %q...", name); err != nil {
		return err
	}
	short, shop, _ := strings.Cut(name, "@")
	shops, err := c.readConfigObject(marketplacesFile)
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
		if p, ok := m.localPlugin(short); ok {
			return c.installFrom(m, p)
		}
	}
	where := fmt.Sprintf("marketplace %q. Your local copy may be out of date — try `claude plugin marketplace update %s`.", shop, shop)
	if shop == "" {
		where = "any configured marketplace. (The Anthropic Directory could not be checked: it could not be reached; check your network connection)"
	}
	return errors.Join(c.printf("\n"), c.fail("Failed to install plugin %q: Plugin %q not found in %s", name, short, where))
}

func (c *command) installFrom(m marketplaceManifest, p marketplacePlugin) error {
	id := p.Name + "@" + m.Name
	present, err := c.installationsOfPlugin(id)
	switch {
	case err != nil:
		return err
	case indexOfScope(present, c.scope) >= 0:
		return c.printf("✔ Plugin %q is already installed (scope: %s) — it loads in place from %s, so edits there take effect at the next session start or /reload-plugins\n", id, c.scope, p.folder)
	}
	if problem := c.installationProblem(p.folder); problem != "" {
		return errors.Join(c.printf("\n"), c.fail("Failed to install plugin %q: %s", id, problem))
	}
	dir := filepath.Join(c.Dir, "plugins", "cache", m.Name, p.Name, p.version)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.CopyFS(dir, os.DirFS(p.folder)); err != nil {
		return fmt.Errorf("installing %s: %w", id, err)
	}
	file, err := c.readConfigObject(installedPluginsFile)
	if err != nil {
		return err
	}
	added := installation{Scope: c.scope, Path: dir, Version: p.version, InstalledAt: c.Now().UTC().Format("2006-01-02T15:04:05.000Z")}
	if added.LastUpdated = added.InstalledAt; c.scope != scopeUser {
		added.Project = c.CWD
	}
	plugins := objectAt(file, "plugins")
	all := plainjson.DecodeIgnoringErrors[[]installation](plugins.Get(id))
	plugins = plugins.Set(id, encodeValue(append(all, added)))
	if err := c.writeConfigObject(installedPluginsFile, plainjson.Object{{Key: "version", Value: encodeValue(2)}, {Key: "plugins", Value: encodeValue(plugins)}}); err != nil {
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

// installationProblem returns why a plugin cannot be installed; empty means that it can. The real CLI checks a temporary copy of the
// plugin, whose path it reports.
func (c *command) installationProblem(folder string) string {
	if _, err := os.Stat(folder); err != nil {
		return "Source path does not exist: " + folder
	}
	data, err := os.ReadFile(pluginManifestPath(folder))
	if err != nil {
		return "" // a plugin needs no manifest
	}
	temporary := fmt.Sprintf("temp_local_%d_000000", c.Now().UnixMilli())
	if _, err = catalog.ParseManifest(data, temporary, pluginManifestPath(filepath.Join(c.Dir, "plugins", "cache", temporary))); err != nil {
		return "Plugin " + strings.Replace(err.Error(), "plugin.json. ", "plugin.json.\n\n", 1)
	}
	return ""
}

func (c *command) setEnabled(id string, enabled bool) error {
	return c.changeSettings(c.scope, "enabledPlugins", func(o plainjson.Object) plainjson.Object { return o.Set(id, encodeValue(enabled)) })
}

// enableOrDisable enables or disables a plugin in the scope of --scope or else in the highest scope that mentions the plugin.
func (c *command) enableOrDisable(name, verb string) error {
	list, err := c.installationsOfPlugin(name)
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

// reportUpToDate reports that a plugin is up to date. This is always so, because plugins are read from their directories.
func (c *command) reportUpToDate(name string) error {
	list, err := c.installationsOfPlugin(name)
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

// uninstall removes a plugin from a scope. As in the real CLI, the files of a plugin stay even
// after it is removed from all scopes. They are then marked with the current time.
func (c *command) uninstall(name string) error {
	c.scope = cmp.Or(c.scope, scopeUser)
	list, err := c.installationsOfPlugin(name)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return c.fail("Failed to uninstall plugin %q: Plugin %q not found in installed plugins", name, name)
	}
	id := list[0].ID
	if indexOfScope(list, c.scope) < 0 {
		if !strings.Contains(name, "@") {
			return c.fail("Failed to uninstall plugin %q: Plugin %q is not installed in %s scope. Use --scope to specify the correct scope.", name, name, c.scope)
		}
		other := slices.MinFunc(list, func(a, b pluginListEntry) int { return cmp.Compare(a.Scope, b.Scope) }).Scope
		if other == scopeProject && string(c.enabledPlugins(other).Get(id)) == "true" {
			return c.fail("Failed to uninstall plugin %q: Plugin %q is enabled at project scope (.claude/settings.json, shared with your team). "+
				"To disable just for you: claude plugin disable %s --scope local", name, id, id)
		}
		return c.fail("Failed to uninstall plugin %q: Plugin %q is installed in %[3]s scope, not %[4]s. Use --scope %[3]s to uninstall.", name, id, other, c.scope)
	}
	err = c.removeInstallationsAndMarkOrphan(id, func(e installation) bool { return e.Scope == c.scope && c.isForCurrentProject(e) })
	if err = errors.Join(err, c.removeEnabledEntry(c.scope, id)); err != nil {
		return err
	}
	return c.printf("✔ Successfully uninstalled plugin: %s (scope: %s)\n", strings.Split(id, "@")[0], c.scope)
}

// removeInstallationsAndMarkOrphan removes the selected installations of a plugin. If none is left, it marks the plugin's files as orphaned.
func (c *command) removeInstallationsAndMarkOrphan(id string, selects func(installation) bool) error {
	file, err := c.readConfigObject(installedPluginsFile)
	if err != nil {
		return err
	}
	plugins := objectAt(file, "plugins")
	all := plainjson.DecodeIgnoringErrors[[]installation](plugins.Get(id))
	left := slices.DeleteFunc(slices.Clone(all), selects)
	if plugins = plugins.Set(id, encodeValue(left)); len(left) == 0 {
		plugins = plugins.Delete(id)
	}
	if err := c.writeConfigObject(installedPluginsFile, file.Set("plugins", encodeValue(plugins))); err != nil || len(left) > 0 || len(all) == 0 {
		return err
	}
	err = os.WriteFile(filepath.Join(all[0].Path, ".orphaned_at"), fmt.Append(nil, c.Now().UnixMilli()), 0o600)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func (c *command) removeEnabledEntry(scope, id string) error {
	if c.enabledPlugins(scope).Get(id) == nil {
		return nil
	}
	return c.changeSettings(scope, "enabledPlugins", func(o plainjson.Object) plainjson.Object { return o.Delete(id) })
}

func (c *command) removeMarketplaceAndPlugins(name string) error {
	known, err := c.readConfigObject(marketplacesFile)
	if err != nil {
		return err
	}
	if known.Get(name) == nil {
		return c.fail("Failed to remove marketplace: Marketplace '%s' not found", name)
	}
	end, declared := "", slices.DeleteFunc(scopes(), func(scope string) bool {
		settings, _ := plainjson.ReadFileOrEmpty(c.settingsFile(scope)) // settings that cannot be read declare nothing
		return objectAt(settings, "extraKnownMarketplaces").Get(name) == nil
	})
	if c.scope != "" {
		if end = " (from " + c.scope + " settings)"; !slices.Contains(declared, c.scope) {
			return c.fail("Failed to remove marketplace: Marketplace '%s' is not declared in %s settings. Omit --scope to remove it from all scopes.", name, c.scope)
		}
		declared = []string{c.scope}
	}
	if err := c.writeConfigObject(marketplacesFile, known.Delete(name)); err != nil {
		return err
	}
	for _, scope := range declared {
		err = errors.Join(err, c.changeSettings(scope, "extraKnownMarketplaces", func(o plainjson.Object) plainjson.Object { return o.Delete(name) }))
	}
	uninstalled, problem := c.uninstallPluginsOfMarketplace(name)
	if err = errors.Join(err, problem); err != nil {
		return err
	}
	return c.printf("✔ Successfully removed marketplace: %s%s\n%s", name, end, uninstalled)
}

// uninstallPluginsOfMarketplace uninstalls every plugin of a marketplace in every scope. It returns the lines that report this.
func (c *command) uninstallPluginsOfMarketplace(marketplaceName string) (report string, err error) {
	file, err := c.readConfigObject(installedPluginsFile)
	if err != nil {
		return "", err
	}
	ids := []string{"plugins from this marketplace:"}
	for _, plugin := range objectAt(file, "plugins") {
		if id := plugin.Key; strings.HasSuffix(id, "@"+marketplaceName) {
			ids = append(ids, id)
			err = errors.Join(err, c.removeInstallationsAndMarkOrphan(id, func(installation) bool { return true }))
			for _, scope := range scopes() {
				err = errors.Join(err, c.removeEnabledEntry(scope, id))
			}
		}
	}
	switch len(ids) {
	case 1:
		return "", err
	case 2:
		ids[0] = "plugin from this marketplace:"
	}
	return fmt.Sprintf("Also uninstalled %d %s\nThe removal also deletes their saved options, secrets and data where it can.\n"+
		"To use a plugin again, add the marketplace back and reinstall the plugin.\n", len(ids)-1, strings.Join(ids, "\n  ")), err
}
