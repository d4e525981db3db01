// Package schema holds the JSON Schemas of the file formats, for `claudeless
// schema` and for editors. They are generated from the Go types.
package schema

import (
	"embed"
	"slices"
	"strings"
)

//go:embed *.json
var files embed.FS

// Names lists the formats, sorted.
func Names() []string {
	entries, _ := files.ReadDir(".") // an embedded folder can be read
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".json"))
	}
	slices.Sort(names)
	return names
}

// Open returns the schema of a format; ok is false if the format is unknown.
func Open(name string) (text []byte, ok bool) {
	text, err := files.ReadFile(name + ".json")
	return text, err == nil
}
