package book

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The repository contains only a few short labels of the pages.
func TestKnownAnchorsAreFewAndShort(t *testing.T) {
	t.Parallel()
	all, err := LoadAnchorsOldestFirst()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("no version has anchors")
	}
	for _, v := range all {
		if err := v.CheckAnchorLimits(); err != nil {
			t.Error(err)
		}
	}
	if again, err := ParseScreenAnchorsTOML("again", ScreenAnchorsTOML(all)); err != nil || !cmp.Equal(all, again) {
		t.Errorf("written and read again they differ: %v\n%s", err, cmp.Diff(all, again))
	}
}

func TestFromPages(t *testing.T) {
	t.Parallel()
	ask := Page{Tape: "t", Name: "ask", State: "permission/shell", Text: " Go on in /tmp/x?\n ❯ 1. Yes\n   2. Yes, in /tmp/x\n\n Esc to cancel\n\n"}
	ask.Options, ask.Slots = FindDialogOptions(ask.Lines()), FindSlots(ask.Lines(), map[string]string{"dir": "/tmp/x"})
	idle := Page{Tape: "t", Name: "idle", State: "idle", Text: "a secret answer\n❯\n  careful mode (shift+tab to cycle) · more\n"}
	got := ChooseScreenAnchors("1.0.0", []Page{idle, ask})
	want := VersionScreenAnchors{Version: "1.0.0", Anchors: []Anchor{
		{Page: "t.ask", State: "permission/shell", Row: 3, Label: "Yes", Selected: true},
		{Page: "t.ask", State: "permission/shell", Row: 2, Label: "Yes, in"},
		{Page: "t.ask", State: "permission/shell", Row: 0, Label: "Esc to cancel"},
		{Page: "t.idle", State: "idle", Row: 0, Label: "careful mode"},
		{Page: "t.idle", State: "idle", Row: 0, Label: "shift+tab to cycle"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("anchors (-want +got):\n%s", diff)
	}
	long := VersionScreenAnchors{Version: "1", Anchors: []Anchor{{Label: strings.Repeat("x", MaxAnchorLength+1)}}}
	if long.CheckAnchorLimits() == nil {
		t.Error("a long label is accepted")
	}
}
