package launch

import (
	"os"
	"path/filepath"
	"testing"
)

// Facts 8: user and assistant lines contain gitBranch, and the environment contains whether there is a repository.
func TestFindCheckout(t *testing.T) {
	tests := map[string]struct {
		files map[string]string
		want  gitCheckoutInfo
	}{
		"no repository": {map[string]string{}, gitCheckoutInfo{}},
		"a branch":      {map[string]string{".git/HEAD": "ref: refs/heads/topic/one\n"}, gitCheckoutInfo{isRepository: true, branch: "topic/one"}},
		"detached":      {map[string]string{".git/HEAD": "0123456789abcdef\n"}, gitCheckoutInfo{isRepository: true, branch: "HEAD"}},
		"worktree": {
			map[string]string{".git": "gitdir: main/.git/worktrees/w\n", "main/.git/worktrees/w/HEAD": "ref: refs/heads/w\n"},
			gitCheckoutInfo{isRepository: true, isLinkedWorktree: true, branch: "w"},
		},
		"submodule": {
			map[string]string{".git": "gitdir: main/.git/modules/m\n", "main/.git/modules/m/HEAD": "ref: refs/heads/m\n"},
			gitCheckoutInfo{isRepository: true, branch: "m"},
		},
		"broken": {map[string]string{".git": "what is this\n"}, gitCheckoutInfo{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range tt.files {
				path := filepath.Join(dir, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			inside := filepath.Join(dir, "sub", "dir")
			if err := os.MkdirAll(inside, 0o755); err != nil {
				t.Fatal(err)
			}
			if got := findCheckout(inside); got != tt.want {
				t.Errorf("findCheckout = %+v, want %+v", got, tt.want)
			}
		})
	}
}
