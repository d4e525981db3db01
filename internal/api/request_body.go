package api

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/claudeless/claudeless/internal/api/history"
)

// maxBody is the maximum size of a request, as in the real API.
const maxBody = 32 << 20

// readRequest parses a request and records its problems.
func (x *exchange) readRequest() (*history.Request, error) {
	if err := x.checkHeaders(); err != nil {
		return nil, err
	}
	body, err := x.readBody()
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(body) {
		return nil, &history.RefusalError{Status: http.StatusBadRequest, Message: "the request body is not valid JSON: it is not UTF-8"}
	}
	r, err := x.service.reader.Read(body, x.Client)
	x.line.Model, x.line.Stream, x.line.Tools = r.Model, r.Stream, r.Tools.Names
	x.reportUnknownKeys(r)
	return r, err
}

// checkHeaders validates the headers.
func (x *exchange) checkHeaders() error {
	key, bearer := x.Header.Get("X-Api-Key"), x.Header.Get("Authorization")
	switch {
	case key != "" && bearer != "":
		x.findings = append(x.findings, "authorization: both x-api-key and authorization were sent")
	case key == "" && bearer == "" && x.service.Scenario.API.RequireAuth:
		return &history.RefusalError{Status: http.StatusUnauthorized, Message: "x-api-key header is required", NoRetry: true}
	}
	if x.service.Scenario.API.Strict && x.Header.Get("Anthropic-Version") == "" {
		return &history.RefusalError{Status: http.StatusBadRequest, Message: "anthropic-version: header is required"}
	}
	if kind := x.Header.Get("Content-Type"); kind != "" && !strings.Contains(strings.ToLower(kind), "json") {
		return &history.RefusalError{Status: http.StatusUnsupportedMediaType, Message: "content-type: must be application/json, not " + kind}
	}
	return nil
}

// readBody reads and decompresses the body.
func (x *exchange) readBody() ([]byte, error) {
	var from io.Reader = x.r.Body
	var err error
	switch encoding := strings.ToLower(x.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
	case "gzip":
		from, err = gzip.NewReader(x.r.Body)
	case "deflate":
		from = flate.NewReader(x.r.Body)
	case "br":
		from = brotli.NewReader(x.r.Body)
	case "zstd":
		var dec *zstd.Decoder
		if dec, err = zstd.NewReader(x.r.Body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBody+1)); err == nil {
			defer dec.Close()
			from = dec
		}
	default:
		return nil, &history.RefusalError{Status: http.StatusUnsupportedMediaType, Message: "content-encoding: " + encoding + " is not known"}
	}
	var b bytes.Buffer
	if err == nil {
		if n := x.r.ContentLength; n > 0 && n <= maxBody {
			b.Grow(int(n) + bytes.MinRead)
		}
		_, err = b.ReadFrom(io.LimitReader(from, maxBody+1))
	}
	switch {
	case b.Len() > maxBody || errors.Is(err, zstd.ErrDecoderSizeExceeded):
		// The client is still sending and reads the response afterwards.
		_, _ = io.Copy(io.Discard, io.LimitReader(x.r.Body, 2*maxBody))
		return nil, &history.RefusalError{Status: http.StatusRequestEntityTooLarge, Message: "Request exceeds the maximum size of 32 MB"}
	case err != nil && x.r.Context().Err() == nil:
		return nil, &history.RefusalError{Status: http.StatusBadRequest, Message: "the request body cannot be read: " + err.Error()}
	}
	return b.Bytes(), err
}

// reportUnknownKeys records keys that no earlier request of the namespace had,
// because new client versions add keys.
func (x *exchange) reportUnknownKeys(r *history.Request) {
	x.namespace.mu.Lock()
	defer x.namespace.mu.Unlock()
	for _, key := range r.UnknownKeys {
		if !x.namespace.unknown[key] {
			x.namespace.unknown[key] = true
			x.line.UnknownKeys = append(x.line.UnknownKeys, key)
		}
	}
	if x.line.UnknownKeys != nil {
		x.findings = append(x.findings, "unknown_keys: "+strings.Join(x.line.UnknownKeys, ", "))
	}
}
