// Package plugincmd implements the command claude plugin for plugins and marketplaces that are local directories. It
// keeps them in the files of the real CLI. [Run] runs one subcommand. Marketplaces that need a network are refused.
package plugincmd

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/argv"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/catalog"
)

// Options configure [Run]. All of them are required.
type Options struct {
	Dir            string // configuration directory
	CWD            string // base of relative paths
	Now            func() time.Time
	Stdout, Stderr io.Writer
}

// ErrNotSimulated is returned for commands that are not simulated.
var ErrNotSimulated = errors.New("not simulated")

type command struct {
	Options
	asJSON bool
	strict bool   // --strict of validate
	scope  string // --scope; empty means not given
}

type subcommand struct {
	names   string // name, then any other names, separated by "|"
	flags   string // options, separated by "; "
	operand string // name of the argument; "" means none, "[...]" means that it can be missing
	run     func(c *command, operand string) error
}

const (
	scopeFlag     = "-s, --scope <scope>"
	longScopeFlag = "--scope <scope>"
)

func pluginCommands() []subcommand {
	return []subcommand{
		{"list", "--json", "", func(c *command, _ string) error { return c.listPlugins() }},
		{"validate", "--json; --strict", "path", (*command).validate},
		{"install|i", scopeFlag + "; -y, --yes", "plugin", withScopeCheck(".", (*command).install)},
		{"details", "--json", "name", (*command).failUnknownOrNotSimulatedPlugin},
		{"uninstall|remove", scopeFlag + "; -y, --yes", "plugin", withScopeCheck(".", (*command).uninstall)},
		{"enable", scopeFlag, "plugin", withScopeCheck("", func(c *command, name string) error { return c.enableOrDisable(name, "enable") })},
		{"disable", scopeFlag, "plugin", withScopeCheck("", func(c *command, name string) error { return c.enableOrDisable(name, "disable") })},
		{"update", scopeFlag, "plugin", withScopeCheck(", managed", (*command).reportUpToDate)},
	}
}

func marketplaceCommands() []subcommand {
	return []subcommand{
		{"add", longScopeFlag, "source", (*command).addMarketplace},
		{"list", "--json", "", func(c *command, _ string) error { return c.listMarketplaces() }},
		{"remove|rm", longScopeFlag, "name", (*command).removeMarketplaceAndPlugins},
		{"update", "", "[name]", (*command).refreshMarketplaceTimestamps},
	}
}

// Run runs one subcommand of claude plugin. words are the arguments after "plugin".
func Run(o Options, words []string) error {
	c, subcommands := &command{Options: o}, pluginCommands()
	others := []string{"configure", "eval", "init", "new", "prune", "autoremove", "restore-set-aside", "tag", "test", "help", "marketplace"} // not simulated
	if len(words) > 1 && words[0] == "marketplace" {
		words, subcommands, others = words[1:], marketplaceCommands(), []string{"help"}
	}
	if len(words) == 0 || slices.Contains(others, words[0]) {
		return ErrNotSimulated
	}
	names := others
	for _, s := range subcommands {
		alternatives := strings.Split(s.names, "|")
		if slices.Contains(alternatives, words[0]) {
			operand, err := c.parse(s, words[1:])
			if err != nil {
				return err
			}
			return s.run(c, operand)
		}
		names = append(names, alternatives...)
	}
	return c.failWithUsageError(argv.UnknownCommandText(words[0], names))
}

func (c *command) parse(s subcommand, words []string) (operand string, err error) {
	var options []argv.OptionDefinition
	for flags := range strings.SplitSeq(s.flags, "; ") {
		if flags != "" {
			options = append(options, argv.OptionDefinition{Flags: flags, Set: func(string) error { return nil }})
		}
	}
	found, err := argv.Parse(options, words)
	for _, c.scope = range found.Options["scope"] { // the last one counts
	}
	c.asJSON, c.strict = found.Options["json"] != nil, found.Options["strict"] != nil
	switch {
	case err != nil:
		return "", c.failWithUsageError(err.Error())
	case len(found.Operands) == 0 && s.operand != "" && s.operand[0] != '[':
		return "", c.failWithUsageError("error: missing required argument '" + s.operand + "'")
	}
	return append(found.Operands, "")[0], nil // the real CLI ignores further arguments
}

func (c *command) failWithUsageError(text string) error {
	fmt.Fprintln(c.Stderr, text)
	return errFailed()
}

// errFailed returns the error of a command that has printed why it failed.
func errFailed() error { return &process.ExitError{Code: process.ExitFailed} }

// withScopeCheck returns a command that first checks --scope. suffix ends the list of scopes in the error. With the suffix ", managed", the
// scope managed is also valid.
func withScopeCheck(suffix string, run func(c *command, operand string) error) func(c *command, operand string) error {
	return func(c *command, operand string) error {
		if c.scope != "" && !slices.Contains(scopes(), c.scope) && (suffix != ", managed" || c.scope != "managed") {
			return c.failWithUsageError(fmt.Sprintf("Unknown scope %q. Use one of: user, project, local%s", c.scope, suffix))
		}
		return run(c, operand)
	}
}

func (c *command) failUnknownOrNotSimulatedPlugin(name string) error {
	if list, err := c.pluginsInstalledForThisProject(); err != nil || slices.ContainsFunc(list, func(p pluginListEntry) bool { return p.isNamed(name) }) {
		return cmp.Or(err, ErrNotSimulated)
	}
	return cmp.Or(c.printf("Plugin %q not found. Run `claude plugin list` to see installed plugins, or pass --plugin-dir <path> to load one from disk.\n", name), errFailed())
}

func (c *command) fail(format string, args ...any) error {
	fmt.Fprintf(c.Stderr, "✘ "+format+"\n", args...)
	return errFailed()
}

func (c *command) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(c.Stdout, format, args...)
	return err
}

func (c *command) printJSON(value any) error {
	text, err := plainjson.Indented(value)
	return errors.Join(err, c.printf("%s", text))
}

const (
	marketplacesFile     = "plugins/" + catalog.KnownMarketplacesFile
	installedPluginsFile = "plugins/installed_plugins.json"
)

// The scopes of plugins and marketplaces.
const (
	scopeUser    = "user"
	scopeProject = "project"
	scopeLocal   = "local"
)

// scopes lists the scopes. The settings of a later scope take precedence.
func scopes() []string { return []string{scopeUser, scopeProject, scopeLocal} }

func (c *command) settingsFile(scope string) string {
	switch scope {
	case scopeProject:
		return filepath.Join(c.CWD, ".claude", "settings.json")
	case scopeLocal:
		return filepath.Join(c.CWD, ".claude", "settings.local.json")
	}
	return filepath.Join(c.Dir, "settings.json")
}

func (c *command) enabledPlugins(scope string) plainjson.Object {
	settings, _ := plainjson.ReadFileOrEmpty(c.settingsFile(scope)) // settings that cannot be read enable nothing
	return objectAt(settings, "enabledPlugins")
}

// isEnabled reports whether the settings of all scopes together enable a plugin.
func (c *command) isEnabled(id string) (enabled bool) {
	for _, scope := range scopes() {
		if value := c.enabledPlugins(scope).Get(id); value != nil {
			enabled = string(value) == "true"
		}
	}
	return enabled
}

// readConfigObject reads a JSON object from a file of the configuration; a missing file is an empty object.
func (c *command) readConfigObject(file string) (plainjson.Object, error) {
	return plainjson.ReadFileOrEmpty(filepath.Join(c.Dir, file))
}

func (c *command) writeConfigObject(file string, object plainjson.Object) error {
	return object.WriteFileAtomically(filepath.Join(c.Dir, file), "", 0o600)
}

func encodeValue(value any) json.RawMessage { return json.RawMessage(plainjson.MarshalString(value)) }

func objectAt(of plainjson.Object, key string) plainjson.Object {
	inner, _ := plainjson.Parse(of.Get(key)) // a value that is not an object counts as missing
	return append(plainjson.Object{}, inner...)
}

// changeSettings changes the object under a key of the settings of a scope. The real CLI writes existing keys in the
// order of its schema, and a new key at the end.
func (c *command) changeSettings(scope, key string, change func(plainjson.Object) plainjson.Object) error {
	settings, err := plainjson.ReadFileOrEmpty(c.settingsFile(scope))
	if err != nil {
		return err
	}
	place := func(key string) int {
		return slices.IndexFunc(settings, func(m plainjson.Member) bool { return m.Key == key })
	}
	if enabled, known := place("enabledPlugins"), place("extraKnownMarketplaces"); known >= 0 && enabled > known {
		field := settings[enabled]
		settings = slices.Insert(slices.Delete(settings, enabled, enabled+1), known, field)
	}
	return settings.Set(key, encodeValue(change(objectAt(settings, key)))).WriteFileAtomically(c.settingsFile(scope), "\n", 0o600)
}

func (c *command) absolutePath(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(c.CWD, path)
}
