package history

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

// Digest identifies a history or a part of one: equal digests mean equal histories.
type Digest [16]byte

// Chain returns the digest of the history d followed by parts.
func (d Digest) Chain(parts ...string) Digest {
	h := sha256.New()
	h.Write(d[:])
	for _, p := range parts {
		var n [4]byte
		n[0], n[1], n[2], n[3] = byte(len(p)>>24), byte(len(p)>>16), byte(len(p)>>8), byte(len(p))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return Digest(h.Sum(nil)[:len(d)])
}

// ChainDigest returns the digest of the history d followed by a part whose digest is known. It is fast for long
// histories, but not cryptographically secure.
func (d Digest) ChainDigest(part Digest) Digest {
	const p, q = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F
	a, b := binary.LittleEndian.Uint64(d[:8]), binary.LittleEndian.Uint64(d[8:])
	x, y := binary.LittleEndian.Uint64(part[:8]), binary.LittleEndian.Uint64(part[8:])
	hi, lo := bits.Mul64(a^x^p, q|1)
	hi2, lo2 := bits.Mul64(b^y^q, p|1)
	a, b = bits.RotateLeft64(hi^lo2, 29)*p+x, bits.RotateLeft64(hi2^lo, 41)*q+y
	a ^= a >> 32
	b ^= b >> 29
	binary.LittleEndian.PutUint64(d[:8], a*q+b)
	binary.LittleEndian.PutUint64(d[8:], b*p+a)
	return d
}
