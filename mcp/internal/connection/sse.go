package connection

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
)

// openLegacySSE opens the stream of the older HTTP transport before limit ends. The first event
// names the endpoint to which the client posts its messages.
func (t *httpTransport) openLegacySSE(limit context.Context) error {
	defer context.AfterFunc(limit, t.endLifetime)()
	err := t.openStreamAndReadEndpoint()
	if err == nil {
		return nil
	}
	t.endLifetime()
	if limit.Err() != nil {
		err = limit.Err()
	}
	transient := isTransientConnectError(err)
	if named := unreachableErrorOrNil(err); named != nil {
		err = fmt.Errorf("SSE error: %w", named)
	}
	if transient {
		err = &DialError{Reason: err.Error(), CLIText: err.Error(), IsTransient: true}
	}
	return err
}

func (t *httpTransport) openStreamAndReadEndpoint() error {
	req, err := http.NewRequestWithContext(t.lifetime, http.MethodGet, t.url, http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := t.httpClient.Do(req)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		text := fmt.Sprintf("SSE error: Non-200 status code (%d)", resp.StatusCode)
		return &DialError{Reason: fmt.Sprintf("HTTP %d: %s", resp.StatusCode, text), CLIText: text, CLICode: formatHTTPStatus(resp), IsTransient: resp.StatusCode >= http.StatusInternalServerError}
	}
	if !isEventStream(resp) {
		resp.Body.Close()
		text := `SSE error: Invalid content type, expected "text/event-stream"`
		return &DialError{Reason: text, CLIText: text, CLICode: formatHTTPStatus(resp)}
	}
	data := boundedLine{limit: t.maxMessageBytes}
	t.legacyEventStream = newEventReader(resp.Body)
	for first := (serverSentEventHead{}); first.name != "endpoint"; {
		data.reset()
		if first, err = t.legacyEventStream.nextEvent(&data, math.MaxInt64); err != nil {
			return errors.New("the event stream ended before it named an endpoint")
		}
	}
	endpoint, err := req.URL.Parse(string(data.kept))
	if err != nil || endpoint.Host != req.URL.Host || endpoint.Scheme != req.URL.Scheme {
		return fmt.Errorf("the server sent the endpoint %q; expected the same scheme and host as the URL of the server", data.kept)
	}
	t.url = endpoint.String()
	return nil
}
