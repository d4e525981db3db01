package messages

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/claudeless/claudeless/internal/journal"
	"github.com/claudeless/claudeless/internal/messages/history"
	"github.com/claudeless/claudeless/internal/messages/wire"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// beside answers a request beside the conversation. It touches no rule and no
// count.
func (x *exchange) beside(kind string, r *history.Request) {
	last := r.Messages[len(r.Messages)-1]
	text := x.s.sideText(kind, last)
	key := history.Digest{}.Chain("side", kind, last.FirstText(), r.Model)
	m := &wire.Message{ID: x.s.folder.ID("msg", key), Model: r.Model, Stop: "end_turn", Blocks: []protocol.Block{protocol.Text(text)}}
	m.Usage = scenarios.Estimate(scenarios.Request{Prompt: last.FirstText()}, m.Blocks)
	x.headers(x.s.folder.ID("req", key))
	x.send(r, m.Play(wire.Manner{Pad: x.s.Scenario.API.Pad, Seed: key}), m)
	x.s.write(x.ns, journal.SideRequest{
		Namespace: x.Namespace, Session: x.Session, Kind: kind, Path: x.Path, Model: r.Model, Unclassified: kind == "other", Status: x.status, MS: x.ms(),
	})
}

// side answers a request beside the conversation and records it.
func (x *exchange) side(kind string, answer func()) {
	x.headers("")
	answer()
	x.s.write(x.ns, journal.SideRequest{
		Namespace: x.Namespace, Session: x.Session, Kind: kind, Path: x.Path, Status: max(x.status, http.StatusOK), MS: x.ms(),
	})
}

// sideText is the answer to a side request: the scenario's, or the least that the
// client can go on with.
func (s *service) sideText(kind string, last *history.Message) string {
	if text, ok := s.Scenario.API.SideText(kind); ok {
		return text
	}
	switch kind {
	case "title":
		title, err := json.Marshal(map[string]string{"title": titleOf(last.FirstText())})
		if err == nil {
			return string(title)
		}
	case "compact":
		return "<summary>\nThe conversation so far went as the scenario has it.\n</summary>"
	}
	return "OK"
}

// titleOf are the first words of what a session is about.
func titleOf(text string) string {
	text = strings.TrimPrefix(strings.TrimSpace(text), "<session>")
	text, _, _ = strings.Cut(text, "</session>")
	words := strings.Fields(text)
	if len(words) > 5 {
		words = words[:5]
	}
	if len(words) == 0 {
		return "Session"
	}
	return strings.Join(words, " ")
}
