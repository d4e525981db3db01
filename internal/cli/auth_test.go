package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAuthStatus compares the login of each environment with the answers of 2.1.330.
func TestAuthStatus(t *testing.T) {
	for name, tt := range map[string]struct {
		environ       []string
		login         string // of the JSON
		keySource     string
		isPrivate     bool // no telemetry
		text          string
		isNotLoggedIn bool
	}{
		"nothing":       {login: "api_key", keySource: "ANTHROPIC_API_KEY", text: "API key: ANTHROPIC_API_KEY\n"},
		"no login":      {environ: []string{"CLAUDELESS_ENVIRONMENT=login"}, login: "none", text: "Not logged in. Run claude auth login to authenticate.\n", isNotLoggedIn: true},
		"key":           {environ: []string{"ANTHROPIC_API_KEY=k", "DISABLE_TELEMETRY=1"}, login: "api_key", keySource: "ANTHROPIC_API_KEY", isPrivate: true, text: "API key: ANTHROPIC_API_KEY\n"},
		"subscription":  {environ: []string{"CLAUDE_CODE_OAUTH_TOKEN=o"}, login: "oauth_token", text: "Auth token: CLAUDE_CODE_OAUTH_TOKEN\n"},
		"token":         {environ: []string{"ANTHROPIC_AUTH_TOKEN=t", "ANTHROPIC_BASE_URL=http://x"}, login: "oauth_token", text: "Auth token: ANTHROPIC_AUTH_TOKEN\nAnthropic base URL: http://x\n"},
		"token and key": {environ: []string{"ANTHROPIC_AUTH_TOKEN=t", "ANTHROPIC_API_KEY=k"}, login: "oauth_token", keySource: "ANTHROPIC_API_KEY", text: "Auth token: ANTHROPIC_AUTH_TOKEN\nAPI key: ANTHROPIC_API_KEY\n"},
		"subscription and key": {
			environ: []string{"CLAUDE_CODE_OAUTH_TOKEN=o", "ANTHROPIC_API_KEY=k"}, login: "api_key", keySource: "ANTHROPIC_API_KEY",
			text: "Auth token: CLAUDE_CODE_OAUTH_TOKEN · not in use\nAPI key: ANTHROPIC_API_KEY\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code := 0
			if tt.isNotLoggedIn {
				code = 1
			}
			run := func(words ...string) string {
				s, stdout, stderr := fakeSystem(t, words...)
				s.Args[0], s.Environ = "/usr/bin/claude", append([]string{"HOME=/h", "CLAUDE_CONFIG_DIR=/c"}, tt.environ...)
				if got := Run(t.Context(), s); got != code || stderr.Len() > 0 {
					t.Errorf("%v: exit %d, want %d; stderr %q", words, got, code, stderr)
				}
				return stdout.String()
			}
			lines := []string{
				"{", `  "loggedIn": true,`, `  "authMethod": "` + tt.login + `",`, `  "apiProvider": "firstParty",`, `  "analyticsDisabled": false,`,
				`  "projectsDirectory": "/c/projects",`, `  "configDirectory": "/c",`, `  "loginExpiresAt": null,`, `  "consoleProfileSignInOffered": true`, "}", "",
			}
			if tt.isNotLoggedIn {
				lines[1] = `  "loggedIn": false,`
			}
			if tt.isPrivate {
				lines[4] = `  "analyticsDisabled": true,`
			}
			if tt.keySource != "" {
				lines[8] += ",\n  \"apiKeySource\": \"" + tt.keySource + `"`
			}
			if diff := cmp.Diff(strings.Join(lines, "\n"), run("auth", "status")); diff != "" {
				t.Errorf("JSON (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.text, run("auth", "status", "--text")); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
		})
	}
}
