package execcmd

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/claudeless/claudeless/internal/base/diag"
)

// CheckWords returns an error for words that kong accepts although they are mistakes: an unknown flag in place of the
// command to run, and a second scenario, which would silently replace the first.
func CheckWords(c *kong.Context) error {
	scenarios := 0
	for _, p := range c.Path {
		if p.Flag != nil && p.Flag.Name == "scenario" {
			scenarios++
		}
	}
	if scenarios > 1 {
		return fmt.Errorf("--scenario was given %d times: join the files with `include` in one of them", scenarios)
	}
	for _, arg := range cmp.Or(c.Selected(), c.Model.Node).Positional {
		words, _ := arg.Target.Interface().([]string)
		if arg.Passthrough && len(words) > 0 && words[0] != "--" && strings.HasPrefix(words[0], "-") {
			return unknownFlag(words[0], c.Flags())
		}
	}
	return nil
}

func unknownFlag(word string, flags []*kong.Flag) error {
	word, _, _ = strings.Cut(word, "=")
	var names []string
	for _, f := range flags {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	}
	text := "unknown flag " + word
	if near := diag.Nearest(word, names); near != "" {
		text += fmt.Sprintf(", did you mean %q?", near)
	}
	return errors.New(text)
}
