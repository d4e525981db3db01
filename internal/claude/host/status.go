package host

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/claude/control"
	"github.com/claudeless/claudeless/internal/claude/session"
	"github.com/claudeless/claudeless/internal/claudecode"
)

type planAnswer struct {
	Exists bool `json:"exists"`
}

type statusAnswer struct {
	Sections []statusSection `json:"sections"`
}

type statusSection struct {
	Title string      `json:"title"`
	Rows  []statusRow `json:"rows"`
}

type statusRow struct {
	Label string `json:"label"`
	Value string `json:"value"`
}

// sessionStatusSections describes the session and its environment (observed with 2.1.330).
func sessionStatusSections(s *session.Session) []statusSection {
	plan := s.Plan()
	rows := []statusRow{{"Version", plan.Version}, {"Session ID", s.State().SessionID()}, {"Session kind", "interactive"}}
	if socket := session.RealCLIMessagingSocketPath(*plan); socket != "" {
		rows = append(rows, statusRow{"Peer address", "uds:" + socket})
	}
	rows = append(rows, statusRow{"cwd", plan.CWD})
	if plan.APIKeySource != "none" {
		rows = append(rows, statusRow{"API key", plan.APIKeySource})
	}
	environment := []statusRow{{"Model", claudecode.ResolveModel(s.State().Model())}}
	if url := baseURL(plan.Environ); url != "" {
		rows = append(rows, statusRow{"Anthropic base URL", url})
		environment = append(environment, statusRow{"Managed settings (remote)", "not fetched — not available with a custom ANTHROPIC_BASE_URL"},
			statusRow{"Organization policy", "not fetched with a custom ANTHROPIC_BASE_URL"})
	}
	return []statusSection{{"Session", rows}, {"Environment", append(environment, statusRow{"Auto mode server", "Disabled"})}}
}

func baseURL(environ []string) string {
	url := ""
	for _, pair := range environ {
		if value, ok := strings.CutPrefix(pair, "ANTHROPIC_BASE_URL="); ok {
			url = value
		}
	}
	return url
}

type fileSuggestionsAnswer struct {
	Suggestions []fileSuggestion `json:"suggestions"`
	CWD         string           `json:"cwd"`
}

type fileSuggestion struct {
	Path string `json:"path"`
}

// suggestFiles lists the files whose path begins with the query. For a name without a directory it lists none, because
// the real CLI looks such a name up in an index that is empty right after the start.
func suggestFiles(_ context.Context, r *requestServer, in request) (control.Answer, error) {
	cwd := r.describer.Directory()
	answer := fileSuggestionsAnswer{Suggestions: []fileSuggestion{}, CWD: cwd}
	query, ok := plainjson.StringValue(in.keys["query"])
	dir, prefix := filepath.Split(strings.TrimPrefix(query, "./"))
	if !ok || dir == "" && prefix != "" || dir != "" && prefix == "" {
		return control.Answer{Payload: answer}, nil
	}
	entries, _ := os.ReadDir(filepath.Join(cwd, dir)) // a directory that cannot be read has no files
	for _, files := range []bool{false, true} {
		for _, e := range entries {
			path := dir + e.Name()
			if !strings.HasPrefix(e.Name(), prefix) || e.IsDir() == files {
				continue
			}
			if e.IsDir() {
				path += "/"
			}
			answer.Suggestions = append(answer.Suggestions, fileSuggestion{path})
		}
	}
	return control.Answer{Payload: answer}, nil
}

// rateMessage checks the user's rating of a message. The rating is not stored.
func rateMessage(_ context.Context, _ *requestServer, in request) (control.Answer, error) {
	_, named := plainjson.StringValue(in.keys["messageUuid"])
	sentiment, _ := plainjson.StringValue(in.keys["sentiment"])
	surface, _ := plainjson.StringValue(in.keys["surface"])
	var cleared bool
	switch {
	case !named, sentiment != "positive" && sentiment != "negative",
		in.hasKey("surface") && surface != "tool_use" && surface != "assistant_text",
		in.hasKey("cleared") && json.Unmarshal(in.keys["cleared"], &cleared) != nil:
		return control.Answer{}, errors.New(`message_rated: messageUuid must be a string, sentiment "positive" or "negative", ` +
			`surface "tool_use" or "assistant_text", and cleared a boolean`)
	}
	return control.Answer{Payload: struct{}{}}, nil
}
