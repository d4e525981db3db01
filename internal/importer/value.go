package importer

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/base/tomltext"
)

// quoteTOMLText quotes a text of a scenario. Placeholders for directories become templates such as {{ cwd }}.
func quoteTOMLText(s string) string { return tomltext.Quote(escapeTemplate(s)) }

var templateReplacer = strings.NewReplacer("{{", `{{ "{{" }}`, HomePlaceholder, "{{ env.HOME }}", CWDPlaceholder, "{{ cwd }}")

// escapeTemplate escapes a text so that the scenario reproduces it exactly.
func escapeTemplate(s string) string { return templateReplacer.Replace(s) }

var directoryPlaceholderToRedactedNameReplacer = strings.NewReplacer(HomePlaceholder, "REDACTED_HOME_1", CWDPlaceholder, "REDACTED_CWD_1")

// replaceDirectoryPlaceholdersByRedactedNames returns a text for places that do not support templates.
func replaceDirectoryPlaceholdersByRedactedNames(s string) string {
	return directoryPlaceholderToRedactedNameReplacer.Replace(s)
}

// oneLine returns a TOML string without line feeds.
func oneLine(s string) string {
	parts := strings.Split(s, "\n")
	for i, p := range parts {
		q := tomltext.Quote(p)
		parts[i] = q[1 : len(q)-1]
	}
	return `"` + strings.Join(parts, `\n`) + `"`
}

var bareKeyPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]+$`) })

func quoteKey(s string) string {
	if bareKeyPattern().MatchString(s) {
		return s
	}
	return oneLine(s)
}

// inlineValue converts JSON to inline TOML. ok is false for what TOML lacks: null, and integers beyond 64 bits.
func inlineValue(raw json.RawMessage) (s string, ok bool) {
	switch plainjson.TypeOf(raw) {
	case "object":
		o, err := plainjson.Parse(raw)
		if err != nil {
			return "", false
		}
		o = o.Distinct()
		if o.Get("$file") != nil {
			return "", false
		}
		parts := make([]string, 0, len(o))
		for _, m := range o {
			v, ok := inlineValue(m.Value)
			if !ok {
				return "", false
			}
			parts = append(parts, quoteKey(m.Key)+" = "+v)
		}
		if len(parts) == 0 {
			return "{}", true
		}
		return "{ " + strings.Join(parts, ", ") + " }", true
	case "array":
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			return "", false
		}
		parts := make([]string, len(items))
		for i, item := range items {
			if parts[i], ok = inlineValue(item); !ok {
				return "", false
			}
		}
		return "[" + strings.Join(parts, ", ") + "]", true
	case "string":
		var s string
		err := json.Unmarshal(raw, &s)
		return oneLine(escapeTemplate(s)), err == nil
	case "boolean":
		return string(raw), true
	case "number":
		return tomlNumber(string(raw))
	}
	return "", false
}

func tomlNumber(s string) (string, bool) {
	if !strings.ContainsAny(s, ".eE") {
		_, err := strconv.ParseInt(s, 10, 64)
		return s, err == nil
	}
	f, err := strconv.ParseFloat(s, 64)
	return s, err == nil && f == f
}
