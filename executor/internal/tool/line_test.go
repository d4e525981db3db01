package tool

import "testing"

func TestCommandLines(t *testing.T) {
	for _, tt := range []struct {
		name string
		f    func(string) any
		want map[string]any
	}{
		{"DescribeLongSleep", func(s string) any { return DescribeLongSleep(s) }, map[string]any{
			"sleep 25": "standalone sleep 25", "sleep 25; a b | c": "sleep 25 followed by: a b c", "sleep 24.9": "",
			"sleep 30 30": "", "true; sleep 30": "", "sleep '30'": "", "sleep (": "", "": "", "sleep x": "",
		}},
		{"BeginsWithSleep", func(s string) any { return BeginsWithSleep(s) }, map[string]any{
			"sleep 1": true, "\n # wait\n  sleep 1": true, "sleep": false, "sleepy 1": false, "true\nsleep 1": false, "": false, "# only": false,
		}},
		{"PrintsNothingOnSuccess", func(s string) any { return PrintsNothingOnSuccess(s) }, map[string]any{
			"mkdir a && cd a": true, "mkdir a && ls": false, "wait": true, "": false, "mkdir (": false, "echo": false,
		}},
		{"EditsInPlace", func(s string) any { return EditsInPlace(s) }, map[string]any{
			"sed -i s/a/b/ f": true, "sed -n p f": false, "eslint --fix .": true, "black .": true, "go fmt ./...": true,
			"npm run format": true, "cat f": false, "go vet": false,
		}},
		{"FilePrintedByCat", func(s string) any { return FilePrintedByCat(s) }, map[string]any{
			"cat a": "a", "cat 'a b'": "a b", "cat a b": "", "cat": "", "head a": "", "cat -n": "", "cat a; true": "", "cat (": "",
		}},
		{"PrintedFile", func(s string) any { return PrintedFile(s) }, map[string]any{
			"cat a": "a", "cat -n a": "a", "head -n 3 a": "a", "head -3 a": "a", "tail a": "a", "cat a b": "", "cat": "", "less a": "",
			"grep -n x a": "a", "grep x": "", "grep x a b": "", "sed -n 1,5p a": "a", "sed 1,5p a": "", "sed -n 5p": "",
			"cat a >b": "", "cat a | cat": "", "cat *.go": "", "cat $X": "", "cat (": "", "head 3 a": "", "": "",
		}},
		{"ChangesDirectory", func(s string) any { return ChangesDirectory(s) }, map[string]any{
			"cd a": true, "true && pushd a": true, "popd": true, "ls": false, "cd (": false, "echo cd": false,
		}},
		{"ExitCodeMeaning(1)", func(s string) any { return ExitCodeMeaning(s, 1) }, map[string]any{
			"grep x f": "No matches found", "true; diff a b": "Files differ", "find /": "Some directories were inaccessible",
			"[ -e a ]": "Condition is false", "grep x f; ls": "", "ls": "", "": "", "grep (": "", "diff a <(grep x b)": "Files differ", "echo $(grep x b)": "",
		}},
		{"ExitCodeMeaning(2)", func(s string) any { return ExitCodeMeaning(s, 2) }, map[string]any{"grep x f": ""}},
	} {
		for command, want := range tt.want {
			if got := tt.f(command); got != want {
				t.Errorf("%s of %q: %v, want %v", tt.name, command, got, want)
			}
		}
	}
}
