// Package plugincmd implements the command claude plugin for plugins and marketplaces that are local directories. It
// keeps them in the files of the real CLI. [Run] runs one subcommand. Marketplaces that need a network are refused.
package plugincmd

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// Options configure [Run]. All of them are required.
type Options struct {
	Dir    string // configuration directory
	CWD    string // base of relative paths
	Now    func() time.Time
	Stdout io.Writer
	Stderr io.Writer
}

// ErrNotSimulated is returned for commands that are not simulated.
var ErrNotSimulated = errors.New("not simulated")

// ErrFailed is returned if a command has failed and the failure has already been printed.
var ErrFailed = errors.New("the plugin command failed")

// Run runs one subcommand of claude plugin. words are the arguments after "plugin".
func Run(o Options, words []string) error {
	c := &command{Options: o}
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool {
		c.asJSON = c.asJSON || w == "--json"
		return w == "--json"
	})
	if len(words) > 1 && words[0] == "marketplace" {
		return c.runMarketplace(words[1], words[2:])
	}
	switch {
	case len(words) == 1 && words[0] == "list":
		return c.listPlugins()
	case len(words) != 2 || strings.HasPrefix(words[1], "-"):
		return ErrNotSimulated
	}
	switch verb, name := words[0], words[1]; verb {
	case "validate":
		return c.validate(name)
	case "install", "i":
		return c.install(name)
	case "uninstall", "remove":
		return c.uninstall(name)
	case "enable", "disable":
		return c.enable(name, verb)
	case "details":
		if _, found, err := c.findInstalled(name); found || err != nil {
			return cmp.Or(err, ErrNotSimulated)
		}
		return cmp.Or(c.printf("Plugin %q not found. Run `claude plugin list` to see installed plugins, or pass --plugin-dir <path> to load one from disk.\n", name), ErrFailed)
	}
	return ErrNotSimulated
}

type command struct {
	Options
	asJSON bool
}

func (c *command) runMarketplace(verb string, words []string) error {
	switch {
	case verb == "list" && len(words) == 0:
		return c.listMarketplaces()
	case verb == "update" && len(words) <= 1:
		return c.updateMarketplaces(strings.Join(words, ""))
	case verb == "add" && len(words) == 1:
		return c.addMarketplace(words[0])
	case (verb == "remove" || verb == "rm") && len(words) == 1:
		return c.removeMarketplace(words[0])
	}
	return ErrNotSimulated
}

func (c *command) fail(format string, args ...any) error {
	fmt.Fprintf(c.Stderr, "✘ "+format+"\n", args...)
	return ErrFailed
}

func (c *command) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(c.Stdout, format, args...)
	return err
}

const (
	marketplacesFile = "plugins/known_marketplaces.json"
	installedFile    = "plugins/installed_plugins.json"
	settingsFile     = "settings.json"
)

// readObject reads a JSON object from a file; a missing file is an empty object.
func (c *command) readObject(file string) (plainjson.Object, error) {
	return plainjson.ReadFile(filepath.Join(c.Dir, file))
}

// writeObject writes an object to a file. Only the settings file ends with a newline.
func (c *command) writeObject(file string, object plainjson.Object) error {
	end := ""
	if file == settingsFile {
		end = "\n"
	}
	return object.WriteFile(filepath.Join(c.Dir, file), end, 0o600)
}

func encodeValue(value any) json.RawMessage { return json.RawMessage(plainjson.MarshalString(value)) }

// objectAt returns the object under a key; it is empty if there is no object.
func objectAt(of plainjson.Object, key string) plainjson.Object {
	inner, _ := plainjson.Parse(of.Get(key)) // a value that is not an object counts as missing
	return append(plainjson.Object{}, inner...)
}

// changeSettings changes the object under a key of the settings. The real CLI writes existing keys in the order of its
// schema, and a new key at the end.
func (c *command) changeSettings(key string, change func(plainjson.Object) plainjson.Object) error {
	settings, err := c.readObject(settingsFile)
	if err != nil {
		return err
	}
	place := func(key string) int {
		for i := range settings {
			if settings[i].Key == key {
				return i
			}
		}
		return -1
	}
	if enabled, known := place("enabledPlugins"), place("extraKnownMarketplaces"); known >= 0 && enabled > known {
		field := settings[enabled]
		settings = slices.Insert(slices.Delete(settings, enabled, enabled+1), known, field)
	}
	return c.writeObject(settingsFile, settings.With(key, encodeValue(change(objectAt(settings, key)))))
}

func (c *command) absolutePath(given string) string {
	if filepath.IsAbs(given) {
		return filepath.Clean(given)
	}
	return filepath.Join(c.CWD, given)
}

func (c *command) timestamp() string { return c.Now().UTC().Format("2006-01-02T15:04:05.000Z") }

// installation is one entry in the list of installed plugins.
type installation struct {
	Scope       string `json:"scope"`
	Path        string `json:"installPath"`
	Version     string `json:"version"`
	InstalledAt string `json:"installedAt"`
	LastUpdated string `json:"lastUpdated"`
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
	ProjectEnabled bool   `json:"projectEnabled"`
}

// installedPlugins returns the installed plugins in the order of the file.
func (c *command) installedPlugins() ([]pluginListEntry, error) {
	file, err := c.readObject(installedFile)
	if err != nil {
		return nil, err
	}
	settings, err := c.readObject(settingsFile)
	if err != nil {
		return nil, err
	}
	enabled := objectAt(settings, "enabledPlugins")
	list := []pluginListEntry{}
	for _, f := range objectAt(file, "plugins") {
		var entries []installation
		if json.Unmarshal(f.Value, &entries) != nil || len(entries) == 0 {
			continue
		}
		e := entries[0]
		one := pluginListEntry{
			ID: f.Key, Version: e.Version, Scope: e.Scope, Enabled: string(enabled.Get(f.Key)) == "true", Path: e.Path,
			InstalledAt: e.InstalledAt, LastUpdated: e.LastUpdated,
		}
		name, shop, _ := strings.Cut(f.Key, "@")
		if m, err := c.marketplaceNamed(shop); err == nil {
			if p, ok := m.plugin(name); ok {
				one.Folder, one.FolderVersion = p.folder, p.version
			}
		}
		list = append(list, one)
	}
	return list, nil
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

// findInstalled returns the installed plugin with a name, with or without its marketplace.
func (c *command) findInstalled(name string) (pluginListEntry, bool, error) {
	list, err := c.installedPlugins()
	i := slices.IndexFunc(list, func(p pluginListEntry) bool {
		short, _, _ := strings.Cut(p.ID, "@")
		return p.ID == name || short == name
	})
	if i < 0 {
		return pluginListEntry{}, false, err
	}
	return list[i], true, err
}

func (c *command) install(name string) error {
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
		where = "any configured marketplace"
	}
	return c.fail("Failed to install plugin %q: Plugin %q not found in %s\n", name, short, where)
}

func (c *command) installFrom(m marketplace, p plugin) error {
	id := p.Name + "@" + m.Name
	dir := filepath.Join(c.Dir, "plugins", "cache", m.Name, p.Name, p.version)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.CopyFS(dir, os.DirFS(p.folder)); err != nil {
		return fmt.Errorf("installing %s: %w", id, err)
	}
	file, err := c.readObject(installedFile)
	if err != nil {
		return err
	}
	now := c.timestamp()
	plugins := objectAt(file, "plugins").With(id, encodeValue([]installation{{Scope: "user", Path: dir, Version: p.version, InstalledAt: now, LastUpdated: now}}))
	if err := c.writeObject(installedFile, plainjson.Object{{Key: "version", Value: encodeValue(2)}, {Key: "plugins", Value: encodeValue(plugins)}}); err != nil {
		return err
	}
	if err := c.setEnabled(id, true); err != nil {
		return err
	}
	return c.printf("✔ Successfully installed plugin: %s (scope: user)\n", id)
}

func (c *command) setEnabled(id string, enabled bool) error {
	return c.changeSettings("enabledPlugins", func(o plainjson.Object) plainjson.Object { return o.With(id, encodeValue(enabled)) })
}

func (c *command) enable(name, verb string) error {
	p, ok, err := c.findInstalled(name)
	switch {
	case err != nil:
		return err
	case !ok:
		return c.fail("Failed to %s plugin %q: Plugin %q not found in installed plugins", verb, name, name)
	case p.Enabled == (verb == "enable"):
		return c.fail("Failed to %s plugin %q: Plugin %q is already %sd", verb, name, name, verb)
	}
	if err := c.setEnabled(p.ID, verb == "enable"); err != nil {
		return err
	}
	short, _, _ := strings.Cut(p.ID, "@")
	return c.printf("✔ Successfully %sd plugin: %s (scope: user)\n", verb, short)
}

// uninstall removes a plugin from the list. Its files are kept and marked with the time, as in the real CLI.
func (c *command) uninstall(name string) error {
	p, ok, err := c.findInstalled(name)
	switch {
	case err != nil:
		return err
	case !ok:
		return c.fail("Failed to uninstall plugin %q: Plugin %q not found in installed plugins", name, name)
	}
	file, err := c.readObject(installedFile)
	if err != nil {
		return err
	}
	if err := c.writeObject(installedFile, file.With("plugins", encodeValue(objectAt(file, "plugins").Without(p.ID)))); err != nil {
		return err
	}
	if err := c.changeSettings("enabledPlugins", func(o plainjson.Object) plainjson.Object { return o.Without(p.ID) }); err != nil {
		return err
	}
	mark := fmt.Append(nil, c.Now().UnixMilli())
	if err := os.WriteFile(filepath.Join(p.Path, ".orphaned_at"), mark, 0o600); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	short, _, _ := strings.Cut(p.ID, "@")
	return c.printf("✔ Successfully uninstalled plugin: %s (scope: %s)\n", short, cmp.Or(p.Scope, "user"))
}
