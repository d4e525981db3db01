package parity_test

import (
	"encoding/json"
	"testing"

	"github.com/claudeless/claudeless/internal/parity"
)

// P2: prose of the real CLI is compared by form, and text of a user or a project by value.
func TestMaskProse(t *testing.T) {
	skills := func(text string) string {
		return `{"type":"attachment","attachment":{"type":"skill_listing","content":"` + text + `"}}`
	}
	agents := func(lines string) string {
		return `{"type":"attachment","attachment":{"type":"agent_listing_delta","addedTypes":["Plan","mine"],"builtInTypes":["Plan"],"addedLines":[` + lines + `]}}`
	}
	blob := func(role, text string) string {
		return `{"type":"api-request-blob","message":{"role":"` + role + `","content":[{"type":"text","text":"` + text + `"}]}}`
	}
	for _, test := range []struct {
		name, ours, real string
		differs          bool
	}{
		{"a built-in skill", skills("- loop"), skills("- loop: Runs it.\\nAgain."), false},
		{"a skill of the project", skills("- mine: Works."), skills("- mine: Sleeps."), true},
		{"another built-in skill", skills("- loop"), skills("- init: Begins."), true},
		{"a built-in agent", agents(`"- Plan: a","- mine: b"`), agents(`"- Plan: c","- mine: b"`), false},
		{"an agent of the project", agents(`"- Plan: a","- mine: b"`), agents(`"- Plan: a","- mine: c"`), true},
		{"a reminder", blob("user", "<system-reminder>\\na"), blob("user", "<system-reminder>\\nb"), false},
		{"a prompt", blob("user", "a"), blob("user", "b"), true},
		{"a message of the system", blob("system", "a"), blob("system", "b"), false},
		{"the notice before a report", blob("user", "[Subagent hand-back] a The report follows:\\n  x"), blob("user", "[Subagent hand-back] b. The report follows:\\n  x"), false},
		{"a report", blob("user", "[Subagent hand-back] a The report follows:\\n  x"), blob("user", "[Subagent hand-back] a The report follows:\\n  y"), true},
		{"an agent in the background", blob("user", "Async agent launched successfully. a\\nagentId: x b\\noutput_file: f\\nc"), blob("user", "Async agent launched successfully. agentId: x\\noutput_file: f"), false},
		{"the file of an agent", blob("user", "Async agent launched successfully. agentId: x\\noutput_file: f"), blob("user", "Async agent launched successfully. agentId: x\\noutput_file: g"), true},
		{"a note in a notification", blob("user", "<note>a</note>x"), blob("user", "\\u003cnote\\u003eb\\u003c/note\\u003ex"), false},
		{"a turn limit", blob("user", "NOTE: this agent stopped at its 1-turn limit a"), blob("user", "NOTE: this agent stopped at its 2-turn limit a"), true},
		{"a message of the system that is empty", blob("system", ""), blob("system", "b"), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			recording := func(line string) *parity.Recording {
				r := &parity.Recording{Transcripts: map[string][]json.RawMessage{"a.jsonl": {json.RawMessage(line)}}}
				r.ReplaceCLIProseByPlaceholders()
				return r
			}
			if found := parity.Compare(recording(test.ours), recording(test.real)); (len(found) > 0) != test.differs {
				t.Errorf("differences %v, want some: %v", found, test.differs)
			}
		})
	}
}

// P2: answers to control requests contain descriptions of built-in commands and skills that are not compared.
func TestMaskDescriptions(t *testing.T) {
	answer := func(list, entry, text string) *parity.Recording {
		r := eventMessage(`{"type":"control_response","response":{"subtype":"success","response":{"` + list + `":[{` + entry + `,"description":"` + text + `"}]}}}`)
		r.ReplaceCLIProseByPlaceholders()
		return r
	}
	for _, test := range []struct {
		list, entry string
		differences int
	}{
		{"commands", `"name":"clear"`, 0},
		{"commands", `"name":"mine"`, 1},
		{"skills", `"name":"keybindings-help","builtin":true`, 0},
		{"skills", `"name":"mine"`, 1},
	} {
		if found := parity.Compare(answer(test.list, test.entry, "a"), answer(test.list, test.entry, "b")); len(found) != test.differences {
			t.Errorf("%s %s: %v", test.list, test.entry, found)
		}
	}
}
