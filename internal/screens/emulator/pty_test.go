package emulator

import "testing"

func TestParseSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Size{
		"110x36": {110, 36}, "20x5": {20, 5}, "500x200": {500, 200},
		"0x0": {}, "wide": {}, "": {}, "110": {}, "110x": {}, "110x36x1": {}, "19x5": {}, "501x20": {}, "80x201": {}, " 80x24": {}, "80x24 ": {}, "+80x24": {}, "080x24": {},
	} {
		got, err := ParseSize(text)
		if got != want || (err == nil) != (want != Size{}) {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
}
