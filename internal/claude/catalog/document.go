package catalog

import (
	"encoding/json"
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
	case uint64:
		return strconv.FormatUint(v, 10)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any: // [name] without quotes is a list
		return strings.Join(d.commaListOfKey(key), ", ")
	}
	return ""
}

// commaListOfKey returns the value of a key as a list: the strings of a YAML list, or the parts of a string, split at commas. A
// missing key or a value of another type gives nil.
func (d markdownDocument) commaListOfKey(key string) []string {
	switch v := d.frontMatter[key].(type) {
	case string:
		out := []string{}
		for item := range strings.SplitSeq(v, ",") {
			if item = strings.TrimSpace(item); item != "" {
				out = append(out, item)
			}
		}
		return out
	case []any:
		out := []string{}
		for _, item := range v {
			if s, ok := item.(string); ok {
				out = append(out, strings.TrimSpace(s))
			}
		}
		return out
	}
	return nil
}

// wordListOfKey returns the names under a key: the texts in a YAML list, or the words of a text. It omits empty names and
// numbers. A missing key gives nil.
func (d markdownDocument) wordListOfKey(key string) []string {
	var found []string
	switch v := d.frontMatter[key].(type) {
	case string:
		found = strings.Fields(v)
	case []any:
		for _, item := range v {
			if s, ok := item.(string); ok && strings.TrimSpace(s) != "" {
				found = append(found, s)
			}
		}
	}
	return slices.DeleteFunc(found, func(name string) bool { return strings.Trim(name, "0123456789") == "" })
}

func (d markdownDocument) numberOfKey(key string) int {
	n, err := strconv.Atoi(d.textOfKey(key))
	if err != nil {
		return 0
	}
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
	raw, err := json.Marshal(table)
	if err != nil {
		return nil
	}
	return raw
}

func (d markdownDocument) description() string {
	if text := d.textOfKey("description"); text != "" {
		return text
	}
	line, _, _ := strings.Cut(strings.TrimSpace(d.body), "\n")
	return strings.TrimSpace(strings.TrimLeft(line, "# "))
}
