package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// markdownDocument is a Markdown file with front matter.
type markdownDocument struct {
	frontMatter map[string]any
	body        string
}

// parseDocument splits a file at its front matter. As in the real CLI, white space after the front matter is not part
// of the body, but white space at the end of the file is. Front matter that is not valid YAML (usually a description
// with a colon) is read line by line as "key: value". Without front matter the whole file is the body.
func parseDocument(data []byte) markdownDocument {
	text := strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n")
	rest, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return markdownDocument{body: text}
	}
	head, body, ok := strings.Cut("\n"+rest, "\n---")
	if !ok {
		return markdownDocument{body: text}
	}
	_, body, _ = strings.Cut(body, "\n") // skips the rest of the line that closes the front matter
	d := markdownDocument{body: strings.TrimLeft(body, " \t\n")}
	if err := yaml.Unmarshal([]byte(head), &d.frontMatter); err != nil {
		d.frontMatter = parseKeyValueLines(head)
	}
	return d
}

// FrontMatter returns the metadata of a skill, agent or command; nil means that the file has none.
func FrontMatter(document []byte) map[string]any { return parseDocument(document).frontMatter }

func parseKeyValueLines(head string) map[string]any {
	front := map[string]any{}
	for line := range strings.SplitSeq(head, "\n") {
		if key, value, ok := strings.Cut(line, ":"); ok && key != "" && !strings.ContainsAny(key, " \t#") {
			front[key] = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return front
}

// textOfKey returns the value of a key as text; a list becomes its elements separated by commas. Empty means that the key is
// missing or has a value of another type.
func (d markdownDocument) textOfKey(key string) string {
	switch v := d.frontMatter[key].(type) {
	case string:
		return strings.TrimSpace(v)
	case bool:
		return strconv.FormatBool(v)
	case uint64, int64, float64:
		return fmt.Sprint(v)
	case []any: // [name] without quotes is a list
		return strings.Join(d.commaListOfKey(key), ", ")
	}
	return ""
}

// stringsOfKey returns the strings of a YAML list, or the parts of a string. A missing key or a value of another type gives nil.
func (d markdownDocument) stringsOfKey(key string, split func(string) []string) []string {
	switch v := d.frontMatter[key].(type) {
	case string:
		return split(v)
	case []any:
		out := []string{}
		for _, item := range v {
			if s, ok := item.(string); ok {
				out = append(out, s)
			}
		}
		return out
	}
	return nil
}

// commaListOfKey returns the strings of a YAML list, or the parts of a string, split at commas. It omits empty ones.
func (d markdownDocument) commaListOfKey(key string) []string {
	list := d.stringsOfKey(key, func(s string) []string { return strings.Split(s, ",") })
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return slices.DeleteFunc(list, func(item string) bool { return item == "" })
}

// wordListOfKey returns the strings of a YAML list, or the words of a string. It omits empty ones and numbers.
func (d markdownDocument) wordListOfKey(key string) []string {
	return slices.DeleteFunc(d.stringsOfKey(key, strings.Fields), func(name string) bool { return strings.Trim(name, "0123456789 ") == "" })
}

// numberOfKey returns the number under a key, or 0.
func (d markdownDocument) numberOfKey(key string) int {
	n, _ := strconv.Atoi(d.textOfKey(key))
	return n
}

// boolOfKey returns the boolean under a key; nil means that the key is missing or has another type.
func (d markdownDocument) boolOfKey(key string) *bool {
	b, err := strconv.ParseBool(d.textOfKey(key))
	if err != nil {
		return nil
	}
	return &b
}

// frontMatterObjectJSON returns the table under a key as JSON; nil means that the key is missing or has another type.
func (d markdownDocument) frontMatterObjectJSON(key string) json.RawMessage {
	table, ok := d.frontMatter[key].(map[string]any)
	if !ok {
		return nil
	}
	raw, _ := json.Marshal(table)
	return raw
}

func (d markdownDocument) descriptionOrFirstLine() string {
	if text := d.textOfKey("description"); text != "" {
		return text
	}
	line, _, _ := strings.Cut(strings.TrimSpace(d.body), "\n")
	return strings.TrimSpace(strings.TrimLeft(line, "# "))
}
