package history

import (
	"encoding/json"
	"time"
)

// Prefix is a prefix of a request in the order that prompt caches use: tools, then the system prompt, then the
// messages, block by block.
type Prefix struct {
	Key      Digest        // digest of the content, without cache marks
	Size     int           // bytes so far
	CacheTTL time.Duration // how long it is cached, according to the cache mark at its end; 0 means that there is no mark
}

type prefixBuilder struct {
	list []Prefix
	key  Digest
	size int
}

// Prefixes returns the prefixes of the request that end with a block, shortest first.
func (r *Request) Prefixes() []Prefix {
	p := &prefixBuilder{}
	p.addBlocks("tools", r.Tools.Raw)
	p.addBlocks("system", r.System)
	for _, raw := range r.raw {
		var m wireMessage
		if json.Unmarshal(raw, &m) == nil {
			p.addBlocks(m.Role, m.Content)
		}
	}
	if n := len(p.list); n > 0 && r.cacheControl != nil { // a mark of the request applies to its last block
		p.list[n-1].CacheTTL = max(p.list[n-1].CacheTTL, cacheLifetime(r.cacheControl))
	}
	return p.list
}

func (p *prefixBuilder) addBlocks(role string, raw json.RawMessage) {
	if len(raw) == 0 {
		return
	}
	if raw[0] == '"' { // a string is equivalent to one text block
		raw = append(append([]byte(`[{"type":"text","text":`), raw...), "}]"...)
	}
	_ = forEachElement(raw, func(block []byte) error { // raw was validated before
		var keys map[string]json.RawMessage
		if json.Unmarshal(block, &keys) != nil {
			return errSyntax
		}
		mark := cacheLifetime(keys["cache_control"])
		delete(keys, "cache_control")
		plain, err := json.Marshal(keys)
		if err != nil {
			return err
		}
		p.key, p.size = p.key.Chain(role, string(plain)), p.size+len(plain)
		p.list = append(p.list, Prefix{Key: p.key, Size: p.size, CacheTTL: mark})
		return nil
	})
}

// cacheLifetime returns the lifetime in a cache_control; 0 means there is no cache_control.
func cacheLifetime(raw json.RawMessage) time.Duration {
	var control struct {
		Type string `json:"type"`
		TTL  string `json:"ttl"`
	}
	switch {
	case raw == nil || json.Unmarshal(raw, &control) != nil || control.Type != "ephemeral":
		return 0
	case control.TTL == "1h":
		return time.Hour
	}
	return 5 * time.Minute
}
