package api

import (
	"encoding/json"
	"strings"

	"github.com/claudeless/claudeless/internal/api/history"
)

// sideRequestText returns the answer to a side request: the scripted one, or a minimal one.
func (s *service) sideRequestText(kind string, last *history.Message) string {
	if text, ok := s.Scenario.API.SideText(kind); ok {
		return text
	}
	switch kind {
	case "title":
		title, err := json.Marshal(map[string]string{"title": titleFromPrompt(last.FirstText())})
		if err == nil {
			return string(title)
		}
	case "compact":
		return "<summary>\nThe conversation so far followed the scenario.\n</summary>"
	}
	return "OK"
}

func titleFromPrompt(text string) string {
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
