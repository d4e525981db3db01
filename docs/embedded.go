// Package docs carries the files of this directory that the binary contains: the JSON Schemas of the file formats,
// which are generated from the Go types, and the list of known differences between claudeless and the real CLI.
package docs

import (
	"embed"
	"slices"
	"strings"
)

// KnownDifferences is the text of parity/known.toml.
//
//go:embed parity/known.toml
var KnownDifferences []byte // constant: never modified

//go:embed schema/*.json
var schemas embed.FS

// SchemaNames lists the formats, sorted.
func SchemaNames() []string {
	entries, _ := schemas.ReadDir("schema") // an embedded folder can be read
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".json"))
	}
	slices.Sort(names)
	return names
}

// Schema returns the schema of a format; ok is false if the format is unknown.
func Schema(name string) (text []byte, ok bool) {
	text, err := schemas.ReadFile("schema/" + name + ".json")
	return text, err == nil
}
