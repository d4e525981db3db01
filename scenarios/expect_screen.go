package scenarios

import (
	"slices"
	"strings"
)

// ObservedScreen is a state of the interactive screen that waited for the user.
type ObservedScreen struct {
	State string // permission, question, plan or dialog
	Kind  string // of the state: bash, trust
	// Answer is yes or no.
	Answer string
}

// AddScreen records a screen that was answered.
func (s *RunRecord) AddScreen(seen ObservedScreen) { s.screens = append(s.screens, seen) }

// MarkRealCLI means that a real claude ran, whose screens are not recorded. Expectations of
// screens are then not judged.
func (s *RunRecord) MarkRealCLI() { s.realCLI = true }

// isScreenState reports whether a text names a state of the screen, with or without a kind.
func isScreenState(text string) bool {
	state, _, _ := strings.Cut(text, "/")
	return slices.Contains([]string{"permission", "question", "plan", "dialog"}, state)
}

// matchesScreen reports whether a screen is the expected one.
func (x *Expectation) matchesScreen(seen ObservedScreen) bool {
	return (x.Screen == seen.State || x.Screen == seen.State+"/"+seen.Kind) && (x.Answered == "" || x.Answered == seen.Answer)
}
