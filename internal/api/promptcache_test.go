package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/api/history"
)

// cacheRequest reads a body in which each word is an abbreviation of a long text.
func cacheRequest(t *testing.T, body string) *history.Request {
	t.Helper()
	body = strings.NewReplacer("LONG", strings.Repeat("long ", 2000), "MARK", `"cache_control":{"type":"ephemeral"}`, "HOUR", `"cache_control":{"type":"ephemeral","ttl":"1h"}`).Replace(body)
	if !json.Valid([]byte(body)) {
		t.Fatal(body)
	}
	r, err := history.NewRequestReader(0).Read([]byte(body), history.SenderFromRequestHeaders(&http.Request{Header: http.Header{}}, "", ""))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestAsk checks M10: prompt caching is simulated from the cache marks of a request.
func TestAsk(t *testing.T) {
	type step struct {
		body  string
		after time.Duration
		want  cacheUsageBytes
	}
	const system, hi, answer, again = 10025, 27, 28, 30 // bytes of the blocks
	for name, steps := range map[string][]step{
		"read what was marked, wherever the marks are now": {
			{
				body: `{"model":"m","system":[{"type":"text","text":"LONG",MARK}],"messages":[{"role":"user","content":[{"type":"text","text":"hi",MARK}]}]}`,
				want: cacheUsageBytes{Created5m: system + hi},
			},
			{
				body: `{"model":"m","system":[{"type":"text","text":"LONG"}],"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"you"},{"role":"user","content":[{"type":"text","text":"again",MARK}]}]}`,
				want: cacheUsageBytes{Read: system + hi, Created5m: answer + again},
			},
			{
				body: `{"model":"m","system":[{"type":"text","text":"LONG",MARK}],"messages":[{"role":"user","content":"other"}]}`,
				want: cacheUsageBytes{Read: system, Uncached: again},
			},
		},
		"no mark, nothing": {
			{body: `{"model":"m","system":"LONG","messages":[{"role":"user","content":"hi"}]}`, want: cacheUsageBytes{Uncached: system + hi}},
			{body: `{"model":"m","system":"LONG","messages":[{"role":"user","content":"hi"}]}`, want: cacheUsageBytes{Uncached: system + hi}},
		},
		"too little to be cached": {
			{body: `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hi",MARK}]}]}`, want: cacheUsageBytes{Uncached: hi}},
			{body: `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hi",MARK}]}]}`, want: cacheUsageBytes{Uncached: hi}},
		},
		"five minutes, renewed by use; an hour": {
			{
				body: `{"model":"m","system":[{"type":"text","text":"LONG",HOUR}],"messages":[{"role":"user","content":[{"type":"text","text":"hi",MARK}]}]}`,
				want: cacheUsageBytes{Created1h: system, Created5m: hi},
			},
			{
				after: 4 * time.Minute, body: `{"model":"m","system":[{"type":"text","text":"LONG",HOUR}],"messages":[{"role":"user","content":[{"type":"text","text":"hi",MARK}]}]}`,
				want: cacheUsageBytes{Read: system + hi},
			},
			{
				after: 4 * time.Minute, body: `{"model":"m","system":[{"type":"text","text":"LONG",HOUR}],"messages":[{"role":"user","content":[{"type":"text","text":"hi",MARK}]}]}`,
				want: cacheUsageBytes{Read: system + hi},
			},
			{
				after: 6 * time.Minute, body: `{"model":"m","system":[{"type":"text","text":"LONG",HOUR}],"messages":[{"role":"user","content":[{"type":"text","text":"hi",MARK}]}]}`,
				want: cacheUsageBytes{Read: system, Created5m: hi},
			},
			{
				after: 2 * time.Hour, body: `{"model":"m","system":[{"type":"text","text":"LONG",HOUR}],"messages":[{"role":"user","content":"hi"}]}`,
				want: cacheUsageBytes{Created1h: system, Uncached: hi},
			},
		},
		"a mark of the whole request": {
			{body: `{"model":"m",MARK,"system":"LONG","messages":[{"role":"user","content":"hi"}]}`, want: cacheUsageBytes{Created5m: system + hi}},
			{body: `{"model":"m",MARK,"system":"LONG","messages":[{"role":"user","content":"hi"}]}`, want: cacheUsageBytes{Read: system + hi}},
		},
		"other tools, another prompt": {
			{
				body: `{"model":"m","tools":[{"name":"A"}],"system":[{"type":"text","text":"LONG",MARK}],"messages":[{"role":"user","content":"hi"}]}`,
				want: cacheUsageBytes{Created5m: 12 + system, Uncached: hi},
			},
			{
				body: `{"model":"m","tools":[{"name":"B"}],"system":[{"type":"text","text":"LONG",MARK}],"messages":[{"role":"user","content":"hi"}]}`,
				want: cacheUsageBytes{Created5m: 12 + system, Uncached: hi},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, now := newPromptCache(100), time.Unix(0, 0)
			for i, s := range steps {
				now = now.Add(s.after)
				if diff := cmp.Diff(s.want, m.ComputeUsageAndStorePrefixes(cacheRequest(t, s.body), now)); diff != "" {
					t.Errorf("request %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}
