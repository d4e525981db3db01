package catalog

import (
	"cmp"
	_ "embed" // for manifests.json
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

//go:embed manifests.json
var manifestSchemaJSON string

// ManifestSchemas returns the schemas "plugin" and "marketplace", and "entry", that of a plugin in the manifest of a marketplace.
var ManifestSchemas = sync.OnceValue(func() plainjson.SchemaLibrary { return plainjson.MustParseSchemas(manifestSchemaJSON) })

// ownAndMarketplaceManifest describe one plugin: its own .claude-plugin/plugin.json and its entry in the manifest of a marketplace. Nil means none.
type ownAndMarketplaceManifest struct{ own, entry plainjson.Object }

// ParseManifest returns the content of a plugin's manifest, or an error with the end of the message of the real CLI.
func ParseManifest(data []byte, plugin, file string) (plainjson.Object, error) {
	kind, fault := "an invalid", ""
	if err := plainjson.SyntaxError(data); err != nil {
		kind, fault = "a corrupt", "JSON parse error: "+err.Error()
	} else if issues := ManifestSchemas()["plugin"].Issues(data); len(issues) > 0 {
		var texts []string
		for _, i := range issues {
			texts = append(texts, i.DottedPath()+": "+i.Message)
		}
		fault = "Validation errors: " + strings.Join(texts, ", ")
	}
	if fault != "" {
		return nil, fmt.Errorf("%s has %s manifest file at %s. %s", plugin, kind, file, fault)
	}
	return plainjson.Parse(data)
}

// textOf returns the text under a key of the own manifest, or else that of the entry.
func (m ownAndMarketplaceManifest) textOf(key string) string {
	own, _ := plainjson.StringValue(m.own.Get(key))
	entry, _ := plainjson.StringValue(m.entry.Get(key))
	return cmp.Or(own, entry)
}

// valuesOf returns the values under a key of both manifests; the elements of a list are values.
func (m ownAndMarketplaceManifest) valuesOf(key string) (values []json.RawMessage) {
	for _, manifest := range []plainjson.Object{m.own, m.entry} {
		if value := manifest.Get(key); plainjson.TypeOf(value) == "array" {
			values = append(values, plainjson.DecodeIgnoringErrors[[]json.RawMessage](value)...)
		} else if value != nil {
			values = append(values, value)
		}
	}
	return values
}
