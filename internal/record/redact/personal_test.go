package redact

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Personal data is found between other text; a finding is "KIND text".
func TestPersonal(t *testing.T) {
	id, longest := "0197-ab", strings.Repeat("ab", 40)
	p := newPersonalDataFinder(&PersonalData{
		Homes: []string{"/home/ada/"}, CWDs: []string{"/srv/lovelace"}, Users: []string{"ada", "root", "ab"}, Hosts: []string{"engine", "localhost"},
		IDs: []string{id, "xyz", "no", longest, longest + "c", "with space", "-lead"},
	})
	for _, tt := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"see /home/ada/x and /srv/lovelace.", []string{"HOME /home/ada", "USER ada", "CWD /srv/lovelace"}},
		{"x/home/ada", []string{"HOME /home/ada", "USER ada"}},
		{"/home/adam", nil},
		{"ada", []string{"USER ada"}},
		{"ada@", []string{"USER ada"}},
		{"adam, canada", nil},
		{"xada", nil},
		{"root on localhost, ab", nil},
		{"on engine:", []string{"HOST engine"}},

		// Ids of messages are found by their beginning.
		{"msg_0123456789", []string{"ID msg_0123456789"}},
		{"(msg_0123456789abcXYZ)", []string{"ID msg_0123456789abcXYZ"}},
		{"msg_012345678", nil},
		{"toolu_0123456789 req_0123456789.", []string{"ID toolu_0123456789", "ID req_0123456789"}},
		{"xmsg_0123456789", nil},
		{"-msg_0123456789", []string{"ID msg_0123456789"}},

		// Known ids are found completely, even between hyphens.
		{"id " + id, []string{"ID " + id}},
		{id, []string{"ID " + id}},
		{id + ".", []string{"ID " + id}},
		{"a-" + id + "-b", []string{"ID " + id}},
		{"a" + id, nil},
		{id + "c", nil},
		{"xyz-xyz", []string{"ID xyz", "ID xyz"}},
		{"no", nil},
		{longest, []string{"ID " + longest}},
		{longest + "c", nil},
		{"with space", nil},
		{"-lead", []string{"ID -lead"}},

		// E-mail addresses.
		{"me@host.tld", []string{"EMAIL me@host.tld"}},
		{"<me.x+y%z-1@a-b.host.tld>, you@host.tld", []string{"EMAIL me.x+y%z-1@a-b.host.tld", "EMAIL you@host.tld"}},
		{"write to me@host.tld.", []string{"EMAIL me@host.tld"}},
		{"write to me@host.tld-.", []string{"EMAIL me@host.tld"}},
		{"git@host.tld noreply@host.tld", nil},
		{"@host.tld", nil},
		{"@", nil},
		{"a@@b.tld", nil},
		{"me@host", nil},
		{"me@host.t", nil},
		{"me@host.tl", []string{"EMAIL me@host.tl"}},
		{"me@.tld", nil},
		{"me@1.2.30", nil},
		{"me@1.tl2", nil},
		{"me@a.tld@b.tld", []string{"EMAIL me@a.tld", "EMAIL a.tld@b.tld"}},
		{"me@-", nil},
		{"x@", nil},
	} {
		var got []string
		for _, f := range p.find(tt.in) {
			got = append(got, f.Kind+" "+tt.in[f.Start:f.End])
			if f.Certain {
				t.Errorf("%q: a personal finding is sure", tt.in)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.in, diff)
		}
	}
}

// Without known ids no id is found. Values that are too short to identify a person are not searched.
func TestPersonalWithout(t *testing.T) {
	p := newPersonalDataFinder(&PersonalData{Users: []string{"", "me"}, Hosts: []string{"/"}})
	if got := p.find("me and xyz-abc"); got != nil {
		t.Errorf("%+v", got)
	}
}
