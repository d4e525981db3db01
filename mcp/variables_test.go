package mcp

import "testing"

func TestExpand(t *testing.T) {
	vars := newVariables([]string{"A=1", "E="}, "/w")
	for in, want := range map[string]string{
		"${A}": "1", "x${A}y${A}": "x1y1", "${E}": "", "${E:-d}": "", "${N:-d}": "d", "${N:-}": "", "${N}": "${N}",
		"$A": "$A", "${A%x}": "${A%x}", "${env:A}": "1", "${workspaceFolder}/x": "/w/x", "${1A}": "${1A}",
	} {
		if got, _ := vars.Expand(in); got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}
