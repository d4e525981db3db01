package process

import (
	"bufio"
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"testing"
)

// TestUnsolicitedResponse: unsolicited responses of a server are not logged to standard error; other log lines of the
// library are.
func TestUnsolicitedResponse(t *testing.T) {
	var stderr bytes.Buffer
	log.SetOutput(logWriterDroppingUnsolicitedHTTPResponses{&stderr})
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	hungUp := make(chan struct{})
	go func() { // returns after its one connection
		defer close(hungUp)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno")
			_, _ = c.Read(make([]byte, 1)) // the client disconnects after it has received the second response
		}
	}()
	client := &http.Client{Transport: &http.Transport{}}
	resp, err := client.Get("http://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "ok" {
		t.Errorf("%q, %v", body, err)
	}
	resp.Body.Close()
	<-hungUp // after the response was logged
	log.Print("something else")
	if got := stderr.String(); !bytes.HasSuffix([]byte(got), []byte("something else\n")) || bytes.Contains([]byte(got), []byte("Unsolicited")) {
		t.Errorf("stderr: %s", got)
	}
}
