package command

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/claudecode"
)

func chooseStyle(o Options, name string) string {
	current := o.State.Snapshot().OutputStyle
	styles := o.Catalog.Styles()
	switch {
	case name != "" && !slices.Contains(styles, name):
		return fmt.Sprintf("Unknown output style %q. Available styles: %s", name, strings.Join(styles, ", "))
	case name != "":
		o.State.SetOutputStyle(name)
		return "Output style set to " + name
	}
	about := map[string]string{}
	for _, s := range claudecode.Styles() {
		about[s.Name] = s.Description
	}
	var b strings.Builder
	b.WriteString("Output style: " + current + "\n\nAvailable styles:")
	for _, s := range styles {
		b.WriteString("\n- " + s)
		if s == current {
			b.WriteString(" (current)")
		}
		if about[s] != "" {
			b.WriteString(": " + about[s])
		}
	}
	return b.String() + "\n\nUsage: /output-style <style>"
}

// renameSession names the session; the caller notifies the host.
func renameSession(o Options, title string) (text, told string) {
	if title == "" {
		return "Couldn't generate a name: no conversation yet. Usage: /rename <name>", ""
	}
	o.State.SetTitle(title)
	o.Session.SetTitle(title)
	return "Session renamed to: " + title, title
}

// SessionName returns the name by which other sessions address a session.
func SessionName(title, id string) string {
	return fmt.Sprintf("%s [%.6s]", cmp.Or(title, "session"), strings.ReplaceAll(id, "-", ""))
}

// chooseColor sets the color of the prompt bar, or selects the next one.
func chooseColor(now, name string) (text, color string) {
	colors := []string{"red", "blue", "green", "yellow", "purple", "orange", "pink", "cyan", "default"}
	switch {
	case name == "":
		name = cmp.Or(now, "green")
	case !slices.Contains(colors, name):
		return fmt.Sprintf("%q isn't an available color. Options: %s", name, strings.Join(colors, ", ")), now
	}
	return "Session color set to: " + name, name
}
