package postgres_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy stands between a store and the server, and loses what it is told to.
type proxy struct {
	listener net.Listener
	target   string
	lose     atomic.Value // a loss
	group    sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

// loss is what the proxy does with what comes next.
type loss string

const (
	nothing  loss = ""
	question loss = "the question" // the server never gets it
	answer   loss = "the answer"   // the server has done what was asked
	silence  loss = "all"          // and the connection stays open
)

// through returns a proxy and the URL of the same database behind it.
func through(t *testing.T, to string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, target: u.Host}
	p.lose.Store(nothing)
	p.group.Go(p.accept)
	t.Cleanup(p.close)
	return p, strings.Replace(to, u.Host, l.Addr().String(), 1)
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.cut()
	p.group.Wait()
}

// cut closes all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		p.group.Go(func() { p.forward(client, server, question, nil) })
		// The answer to a commit says that no transaction is open any more.
		p.group.Go(func() { p.forward(server, client, answer, []byte{'Z', 0, 0, 0, 5, 'I'}) })
	}
}

// forward copies until the end, or closes both sides instead of passing on what
// ends with last while that is to be lost.
func (p *proxy) forward(from, to net.Conn, what loss, last []byte) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		switch lose := p.lose.Load(); {
		case lose == silence:
			continue
		case lose == what && bytes.HasSuffix(buf[:n], last):
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

func TestProxy(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}
	}()
	p, to := through(t, fmt.Sprintf("echo://%s", l.Addr()))
	c, err := net.Dial("tcp", strings.TrimPrefix(to, "echo://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	buf := make([]byte, 3)
	if _, err := c.Write([]byte("one")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, buf); err != nil || string(buf) != "one" {
		t.Fatalf("%q, %v", buf, err)
	}
	p.lose.Store(question)
	if _, err := c.Write([]byte("two")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, buf); !errors.Is(err, io.EOF) && err == nil {
		t.Fatalf("%q came through", buf)
	}
}
