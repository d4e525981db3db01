package mcpcmd

import (
	"encoding/json"
	"testing"
)

// The readable result of a call shows the size of a binary part, even if its data is not base64.
func TestBlockText(t *testing.T) {
	for block, want := range map[string]string{
		`{"type":"text","text":"hi"}`:                                                                "hi",
		`{"type":"image","data":"AAAA","mimeType":"image/png"}`:                                      "[image: image/png, 3 bytes]",
		`{"type":"resource","resource":{"uri":"u","text":"hi"}}`:                                     "hi",
		`{"type":"resource","resource":{"uri":"u","mimeType":"a/b","blob":"AAA="}}`:                  "[resource u: a/b, 2 bytes]",
		`{"type":"resource","resource":{"uri":"u","mimeType":"a/b","blob":"no base64 at all!"}}`:     "[resource u: a/b, 12 bytes]",
		`{"type":"resource","resource":{"uri":"u","mimeType":"a/b","blob":""}}`:                      "[resource u: a/b, 0 bytes]",
		`{"type":"resource","resource":{"uri":"u","mimeType":"a/b","blob":5,"text":"not a string"}}`: `{"type":"resource","resource":{"uri":"u","mimeType":"a/b","blob":5,"text":"not a string"}}`,
		`{"type":"novel","x":1}`: `{"type":"novel","x":1}`,
	} {
		if got := blockText(json.RawMessage(block)); got != want {
			t.Errorf("%s: %q, want %q", block, got, want)
		}
	}
}
