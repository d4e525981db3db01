package connection

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// sessionHeader carries the session id that the server assigned.
const sessionHeader = "Mcp-Session-Id"

// versionHeader carries the negotiated protocol version.
const versionHeader = "Mcp-Protocol-Version"

// checkAnswer returns why the answer to a posted message cannot be used; nil means it can. It reads an answer in JSON, and
// replaces it by the response in it.
func checkAnswer(req *http.Request, resp *http.Response) error {
	isRequest := req.Context().Value(failureKey{}) != nil
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	succeeded := resp.StatusCode/100 == 2
	switch {
	case resp.StatusCode == http.StatusNotFound && req.Header.Get(sessionHeader) != "": // the session has ended
		return nil
	case succeeded && !isRequest, resp.StatusCode/100 == 3: // net/http follows redirects
		return nil
	case resp.StatusCode == http.StatusAccepted: // the server may never answer
		<-req.Context().Done()
		return req.Context().Err()
	case succeeded && media == "text/event-stream":
		return nil
	case succeeded && media != "application/json":
		return &AnswerError{resp.StatusCode, "Unexpected content type: " + cmp.Or(resp.Header.Get("Content-Type"), "null")}
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	message := response(body)
	refused := resp.StatusCode == http.StatusBadRequest && req.Header.Get(versionHeader) == ModernVersion && plainjson.Read[struct{ Error json.RawMessage }](message).Error != nil
	switch {
	case !succeeded && !refused:
		return &AnswerError{resp.StatusCode, strings.TrimSpace("Error POSTing to endpoint: " + string(body))}
	case !json.Valid(body):
		return ErrUnreadable
	case !isMessage(message):
		return &ResultError{"returned a malformed result that failed schema validation: the answer is not a message of JSON-RPC"}
	}
	resp.StatusCode, resp.Body = http.StatusOK, io.NopCloser(bytes.NewReader(withNumericID(message)))
	return nil
}

// response returns the message that a body consists of. In an array, it is the first one that answers a request.
func response(body []byte) []byte {
	for _, m := range plainjson.Read[[]json.RawMessage](body) {
		if plainjson.Read[struct{ Method *string }](m).Method == nil {
			return m
		}
	}
	return body
}
