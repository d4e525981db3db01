// Package catalog finds the agents, slash commands, skills, output styles and plugins in files of users and plugins.
//
// Unreadable and invalid files are skipped and reported, and do not affect other files.
package catalog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Options specify where to find agents, commands, skills, styles and plugins. The zero value finds only the built-in ones.
type Options struct {
	UserDir string // the state directory; empty means none
	// ProjectDirs are the .claude directories of the project, the nearest one first. If the last one lacks a folder, it is read from
	// MainWorktreeDir, which is the .claude directory of the main git worktree (empty means none).
	ProjectDirs     []string
	MainWorktreeDir string
	AddedDirs       []string               // absolute paths of other directories; only the skills in their .claude directories are used
	Plugins         []string               // absolute paths of plugin directories, or of directories with several plugins
	Enabled         []string               // marketplace plugins that the settings enable, as "name@marketplace"
	Marketplaces    string                 // directory that contains the list of known marketplaces and the data of plugins
	Agents          string                 // --agents: a JSON object, keyed by name; empty means none
	Open            func(dir string) fs.FS // returns the file tree of an absolute directory; nil means that nothing is read from disk
	Guide           bool                   // adds the built-in agent claude-code-guide; sessions of the SDKs do not have this agent
	// Disabled (--safe-mode) leaves out everything that is not built in, and also the built-in agent statusline-setup.
	// The catalog still lists the names of the plugins in Plugins.
	Disabled bool
}

const pluginSource = "plugin"

// Command is a custom slash command or a skill.
type Command struct {
	Name                            string // name without the slash, such as "commit", or "plugin:name" if a plugin provides it
	Description                     string
	ArgumentHint                    string   // the key argument-hint of the front matter
	Arguments                       []string // the names of the arguments, in order; nil means the arguments have no names
	Body, Source                    string
	Path                            string // file; empty means none
	Skill                           bool
	Dir                             string   // directory of a skill; empty means a command
	Title                           string   // a second name, from the front matter of a skill
	Tools                           []string // tools that the command may use without permission questions
	Model, Effort                   string   // model and effort level with which the command runs; empty means those of the session
	RunsInAgent                     bool     // the command runs in a sub-agent
	Agent                           string   // kind of the sub-agent; empty or unknown means general-purpose
	HiddenFromModel, HiddenFromUser bool
	HasDescription                  bool // the front matter has a description or says when to use the command
	WhenToUse                       string
	Hooks                           json.RawMessage // become active when the command is first used; format of settings files; nil means none
	PathGlobs                       []string        // a skill becomes available when the model reads or changes a file that they match; nil means at the start
	ManifestPlace                   int             // place of the command's path in the manifests of a plugin, from 1; 0 means that it is from a default folder
}

// Catalog contains the built-in entries and those that users add in files. Many goroutines may use it.
type Catalog struct {
	options     Options
	pluginParts []PluginHooksAndServers // parts of the plugins that [New] found

	mu             sync.Mutex
	commands       []Command // commands in the displayed order; a change replaces the slice and never modifies it
	skillsForPaths []Command // skills that are not available yet
	plugins        []protocol.Plugin
	pluginErrors   []protocol.PluginError
	pluginWarnings []protocol.PluginError
	styles         []string
	styleTexts     map[string]string // texts of output styles, by name
	agents         map[string]Agent
}

// New reads the files of all entries. It skips unreadable and invalid files, and returns a warning for each of them.
func New(o Options) (*Catalog, []string) {
	c := &Catalog{options: o, agents: map[string]Agent{}, styleTexts: map[string]string{}}
	for _, s := range claudecode.OutputStyles() {
		c.styles, c.styleTexts[s.Name] = append(c.styles, s.Name), s.Description
	}
	for _, a := range builtinAgents() {
		c.agents[a.Name] = a
	}
	if !o.Guide {
		delete(c.agents, "claude-code-guide")
	}
	if o.Disabled {
		all, warnings := New(Options{Plugins: o.Plugins, Open: o.Open})
		c.plugins, c.pluginErrors = all.plugins, all.pluginErrors
		delete(c.agents, "statusline-setup")
		return c, warnings
	}
	l := &loader{catalog: c}
	if o.Open != nil {
		// Later sources win: a project's agent replaces the user's agent of the same name. Commands: see setSortedUniqueCommands.
		for i, dir := range o.Plugins {
			l.readPluginOrCollection(o.Open(dir), dir, i)
		}
		l.readEnabledPlugins(o)
		l.readFilesOfUserAndProject(o)
	}
	l.setSortedUniqueCommands()
	c.pluginParts = l.parts
	if o.Agents != "" {
		if err := c.DefineAgents(json.RawMessage(o.Agents), "flagSettings"); err != nil {
			l.warnings = append(l.warnings, "--agents: "+err.Error())
		}
	}
	return c, l.warnings
}

// ReloadCommands reads the commands and skills of the user and the project again, and reports whether their names have changed.
func (c *Catalog) ReloadCommands() (haveNamesChanged bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.options.Open == nil || c.options.Disabled {
		return false
	}
	l := &loader{catalog: &Catalog{agents: map[string]Agent{}, styleTexts: map[string]string{}}, parts: c.pluginParts}
	isNotOfPlugin := func(k Command) bool { return k.Source != pluginSource }
	l.commands = slices.DeleteFunc(slices.Clone(c.commands), isNotOfPlugin)
	l.catalog.skillsForPaths = slices.DeleteFunc(slices.Clone(c.skillsForPaths), isNotOfPlugin)
	l.readFilesOfUserAndProject(c.options)
	l.setSortedUniqueCommands()
	c.skillsForPaths = slices.DeleteFunc(l.catalog.skillsForPaths, func(k Command) bool {
		isAvailable := slices.ContainsFunc(c.commands, func(old Command) bool { return old.Name == k.Name && old.PathGlobs != nil })
		if isAvailable {
			l.catalog.commands = append(l.catalog.commands, k)
		}
		return isAvailable
	})
	haveNamesChanged = !slices.EqualFunc(c.commands, l.catalog.commands, func(a, b Command) bool { return a.Name == b.Name })
	c.commands = l.catalog.commands
	return haveNamesChanged
}

// Commands lists custom commands and skills in the order of the init event: skills, commands, commands of plugins, skills of
// plugins. User skills precede project skills; user commands follow project commands. Callers must not modify the result.
func (c *Catalog) Commands() []Command {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.commands
}

// Command returns the custom command or skill with this name, or false if none has it.
func (c *Catalog) Command(name string) (Command, bool) {
	commands := c.Commands()
	i := slices.IndexFunc(commands, func(k Command) bool { return k.Name == name })
	if i < 0 {
		if i = slices.IndexFunc(commands, func(k Command) bool { return name != "" && (k.Title == name || k.DisplayName() == name) }); i < 0 {
			return Command{}, false
		}
	}
	return commands[i], true
}

// BuiltInSkill returns a built-in skill. Its body is what a user would type, because the instructions belong to the vendor.
func BuiltInSkill(name string) (Command, bool) {
	b, ok := claudecode.PromptCommandNamed(name)
	return Command{Name: b.Name, Description: b.Description, Body: "/" + name + " $ARGUMENTS", Tools: b.Tools, RunsInAgent: b.RunsInAgent, HiddenFromModel: b.Chars == 0}, ok
}

// SimilarNameHint returns a sentence that suggests the skill or command with the most similar name, or "".
func (c *Catalog) SimilarNameHint(name string) string {
	names := append(claudecode.TerminalOnlyCommands(), mapToNames(c.Commands(), func(k Command) string { return k.Name })...)
	for _, b := range claudecode.PrintModeCommands() {
		names = append(append(names, b.Name), b.Aliases...)
	}
	if near := diag.SimilarOtherNameWithin(name, names, 2); near != "" {
		return ". Did you mean " + near + "?"
	}
	return ""
}

// DescriptionWithSource returns the description as hosts show it, with the source of the command added.
func (k Command) DescriptionWithSource() string {
	switch k.Source {
	case "projectSettings":
		return k.Description + " (project)"
	case "userSettings":
		return k.Description + " (user)"
	case pluginSource:
		plugin, _, _ := strings.Cut(k.Name, ":")
		return strings.TrimSpace("(" + plugin + ") " + k.Description)
	default:
		return k.Description
	}
}

// DisplayName returns the title, for a plugin's command after the name of the plugin; the name if the command has no title.
func (k Command) DisplayName() string {
	if plugin, _, isQualified := strings.Cut(k.Name, ":"); k.Title != "" && isQualified && k.Source == pluginSource {
		return plugin + ":" + k.Title
	}
	return cmp.Or(k.Title, k.Name)
}

// LineInModelContext returns the line about the command in the list that the model receives. Titles with spaces are left out.
func (k Command) LineInModelContext() string {
	name := k.Name
	if shown := k.DisplayName(); shown != name && !strings.Contains(shown, " ") {
		name += " (" + shown + ")"
	}
	return strings.TrimSuffix("- "+name+": "+k.Description+" - "+k.WhenToUse, " - ")
}

// IsListedForModel reports whether the context of the model lists the command. A plugin's command needs a description for this.
func (k Command) IsListedForModel() bool {
	return !k.HiddenFromModel && (k.HasDescription || k.Source != pluginSource)
}

// Counts returns the numbers of plugins and skills.
func (c *Catalog) Counts() (plugins, skills int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.commands {
		if k.Skill {
			skills++
		}
	}
	return len(c.plugins), skills
}

// OutputStyleText returns the text of the output style with this name; empty for the default style and for unknown styles.
func (c *Catalog) OutputStyleText(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.styleTexts[name]
}

// OutputStyleNames lists the output styles, built-in styles first.
func (c *Catalog) OutputStyleNames() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.styles)
}

func mapToNames[T any](list []T, name func(T) string) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = name(v)
	}
	return out
}

type loader struct {
	catalog                *Catalog
	commands               []Command // commands that the catalog already contains
	newSkills, newCommands []Command
	parts                  []PluginHooksAndServers
	warnings               []string
	plugin                 pluginBeingRead // empty while no plugin is being read
}

// customizationFolders are the folders of a .claude or plugin directory that [loader.readFolder] reads.
var customizationFolders = [...]string{"commands", "agents", "skills", "output-styles"}

// readFilesOfUserAndProject reads the nearest directory first, but last for agents and output styles, because later ones replace earlier
// ones of the same name.
func (l *loader) readFilesOfUserAndProject(o Options) {
	for _, folder := range customizationFolders {
		if o.UserDir != "" {
			l.readFolder(sourceDir{o.Open(o.UserDir), o.UserDir, "userSettings"}, folder, folder)
		}
		dirs := slices.Clone(o.ProjectDirs)
		if o.MainWorktreeDir != "" {
			if _, err := fs.Stat(o.Open(dirs[len(dirs)-1]), folder); err != nil {
				dirs = append(dirs, o.MainWorktreeDir)
			}
		}
		if folder == "agents" || folder == "output-styles" {
			slices.Reverse(dirs)
		}
		for _, dir := range dirs {
			l.readFolder(sourceDir{o.Open(dir), dir, "projectSettings"}, folder, folder)
		}
	}
	for _, dir := range o.AddedDirs {
		dir = filepath.Join(dir, ".claude")
		l.readFolder(sourceDir{o.Open(dir), dir, "projectSettings"}, "skills", "skills")
	}
}

// sourceDir is a .claude or plugin directory.
type sourceDir struct {
	tree         fs.FS
	path, source string // source is that of the agents and commands in the directory, such as "userSettings"
}

// readFolder reads the files of a kind, which is one of customizationFolders, in a folder of a directory.
func (l *loader) readFolder(dir sourceDir, kind, folder string) {
	if kind == "skills" {
		entries, _ := fs.ReadDir(dir.tree, folder) // a missing folder has no entries
		for _, e := range entries {
			l.readSkill(dir, path.Join(folder, e.Name()))
		}
		return
	}
	for _, file := range l.markdownFiles(dir.tree, folder) {
		l.readFile(dir, kind, folder, file)
	}
}

// readFile reads a file of a folder. The names of commands begin with their directories below the folder.
func (l *loader) readFile(dir sourceDir, kind, folder, file string) {
	doc, ok := l.readDocumentOncePerPlugin(dir.tree, file)
	switch {
	case !ok:
	case kind == "agents":
		l.addAgent(doc, dir.source, filepath.Join(dir.path, file))
	case kind == "commands":
		below, _ := strings.CutPrefix(path.Dir(file), folder)
		space := strings.ReplaceAll(strings.TrimPrefix(below+"/", "/"), "/", ":")
		l.newCommands = append(l.newCommands, l.withMetadata(doc, Command{Name: l.plugin.namePrefix + space + fileNameWithoutExtension(file), Source: dir.source, Path: filepath.Join(dir.path, file)}))
	default:
		name := l.plugin.namePrefix + cmp.Or(doc.textOfKey("name"), fileNameWithoutExtension(file))
		if !slices.Contains(l.catalog.styles, name) {
			l.catalog.styles = append(l.catalog.styles, name)
		}
		l.catalog.styleTexts[name] = strings.TrimSpace(doc.body)
	}
}

// markdownFiles lists the .md files below a folder, sorted by path.
func (l *loader) markdownFiles(tree fs.FS, folder string) []string {
	var files []string
	// An unreadable folder counts as empty, as in the real CLI.
	_ = fs.WalkDir(tree, folder, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return fs.SkipDir
		}
		if !d.IsDir() && strings.EqualFold(path.Ext(p), ".md") {
			files = append(files, p)
		}
		return nil
	})
	return files
}

func (l *loader) readSkill(dir sourceDir, folder string) {
	file := path.Join(folder, "SKILL.md")
	if !fileExists(dir.tree, file) {
		return
	}
	doc, ok := l.readDocumentOncePerPlugin(dir.tree, file)
	if !ok {
		return
	}
	list := &l.newSkills
	if pathGlobs(doc) != nil {
		list = &l.catalog.skillsForPaths
	}
	*list = append(*list, l.withMetadata(doc, Command{
		Name: l.plugin.namePrefix + path.Base(folder), Source: dir.source, Path: filepath.Join(dir.path, file), Skill: true, Dir: filepath.Join(dir.path, folder), Title: doc.textOfKey("name"),
		Hooks: doc.frontMatterObjectJSON("hooks"), PathGlobs: pathGlobs(doc),
	}))
}

func (l *loader) withMetadata(doc markdownDocument, k Command) Command {
	k.Description, k.ArgumentHint, k.Body = doc.descriptionOrFirstLine(), doc.textOfKey("argument-hint"), l.expandPluginDirs(doc.body, strings.Clone)
	k.Arguments, k.ManifestPlace = doc.wordListOfKey("arguments"), l.plugin.place
	k.WhenToUse = doc.textOfKey("when_to_use")
	k.HasDescription = doc.textOfKey("description")+k.WhenToUse != ""
	k.Tools, k.Model, k.Effort = doc.commaListOfKey("allowed-tools"), doc.textOfKey("model"), doc.textOfKey("effort")
	k.RunsInAgent, k.Agent = doc.textOfKey("context") == "fork", doc.textOfKey("agent")
	noModel, user := doc.boolOfKey("disable-model-invocation"), doc.boolOfKey("user-invocable")
	k.HiddenFromModel, k.HiddenFromUser = noModel != nil && *noModel, user != nil && !*user
	return k
}

func (l *loader) readDocumentOncePerPlugin(tree fs.FS, file string) (markdownDocument, bool) {
	if l.plugin.filesRead[file] {
		return markdownDocument{}, false
	}
	if l.plugin.filesRead != nil {
		l.plugin.filesRead[file] = true
	}
	data, err := fs.ReadFile(tree, file)
	if err != nil {
		l.warnings = append(l.warnings, fmt.Sprintf("%s: %v", file, err))
		return markdownDocument{}, false
	}
	return parseDocument(data), true
}

// listRank determines the place of the command in lists: skills of the user, of the project, commands, commands of plugins,
// skills of plugins.
func (k Command) listRank() int {
	switch {
	case k.Source == pluginSource && k.Skill:
		return 4
	case k.Source == pluginSource:
		return 3
	case !k.Skill:
		return 2
	case k.Source != "userSettings":
		return 1
	default:
		return 0
	}
}

// setSortedUniqueCommands stores the earlier and the new commands in the catalog. They are sorted by [Command.listRank], then
// by plugin (in the order given) and then by name (in natural order). Of entries with the same name, it keeps the first.
func (l *loader) setSortedUniqueCommands() {
	place := func(k Command) int {
		plugin, _, _ := strings.Cut(k.Name, ":")
		return slices.IndexFunc(l.parts, func(p PluginHooksAndServers) bool { return k.Source == pluginSource && p.Name == plugin })
	}
	seen := map[string]bool{}
	all := slices.Concat(l.commands, l.newSkills, l.newCommands)
	slices.SortStableFunc(all, func(a, b Command) int {
		return cmp.Or(a.listRank()-b.listRank(), place(a)-place(b), a.ManifestPlace-b.ManifestPlace, compareNamesInRealCLIOrder(a.Name, b.Name))
	})
	l.catalog.commands = slices.DeleteFunc(all, func(k Command) bool {
		isDuplicate := seen[k.Name]
		seen[k.Name] = true
		return isDuplicate
	})
}

func fileNameWithoutExtension(file string) string {
	return strings.TrimSuffix(path.Base(file), path.Ext(file))
}

// collationOrder lists the ASCII characters in natural order: punctuation, digits, then letters regardless of case.
const collationOrder = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"

// compareNamesInRealCLIOrder orders names as the real CLI does. It compares their [collationKey]; of two names that differ only
// in case, the lower-case name comes first. Letters outside ASCII come last.
func compareNamesInRealCLIOrder(a, b string) int {
	return cmp.Or(cmp.Compare(collationKey(a), collationKey(b)), cmp.Compare(b, a))
}

// collationKey returns a key for a name. The byte order of the keys is the order of the real CLI.
func collationKey(name string) string {
	return strings.Map(func(c rune) rune {
		if at := strings.IndexRune(collationOrder, c); at >= 0 {
			return rune(at)
		}
		return c
	}, strings.ToLower(name))
}
