package process

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEnvironOfASystem(t *testing.T) {
	given := []string{"Path=a", `=C:=C:\x`, `UserProfile=C:\Users\me`}
	for _, tt := range []struct {
		name, goos string
		env, want  []string
	}{
		{"unix", "linux", given, given},
		{"windows", "windows", given, []string{"PATH=a", `=C:=C:\x`, `USERPROFILE=C:\Users\me`, `HOME=C:\Users\me`}},
		{"windows with HOME", "windows", []string{"Home=h", "USERPROFILE=p"}, []string{"HOME=h", "USERPROFILE=p"}},
		{"windows without a profile", "windows", []string{"BROKEN"}, []string{"BROKEN"}},
	} {
		if diff := cmp.Diff(tt.want, uppercaseNamesAndAddHomeOnWindows(tt.env, tt.goos)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.name, diff)
		}
	}
}
