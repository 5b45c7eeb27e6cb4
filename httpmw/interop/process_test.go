package interop_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// needs skips a test that is not asked for, since it needs programs that may be missing.
// If it is asked for, they may not.
func needs(t *testing.T) {
	t.Helper()
	if os.Getenv("HOLDFAST_INTEROP") == "" {
		t.Skip("HOLDFAST_INTEROP is not set; httpmw/interop/nginx.sh sets it")
	}
}

// start runs a program until the test has ended, or stop is called.
func start(t *testing.T, command *exec.Cmd) (stop func()) {
	t.Helper()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	pid := filepath.Join(os.TempDir(), fmt.Sprintf("interop-%d.pid", command.Process.Pid)) // for nginx.sh
	if err := os.WriteFile(pid, []byte(strconv.Itoa(command.Process.Pid)), 0o600); err != nil {
		t.Error(err)
	}
	stop = sync.OnceFunc(func() {
		_ = command.Process.Kill() // it may have ended by itself
		_ = command.Wait()         // that it was killed
		_ = os.Remove(pid)
	})
	t.Cleanup(stop)
	return stop
}

// freeAddress returns an address that nobody listens at, just now.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// nginx runs as a reverse proxy in front of a backend.
type nginx struct {
	address string
	folder  string
	stop    func()
}

// startNginx starts nginx with these locations in front of backend, an address.
func startNginx(t *testing.T, backend string) *nginx {
	t.Helper()
	n := &nginx{address: freeAddress(t), folder: t.TempDir()}
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;" // the folder is the test's
	}
	config := strings.NewReplacer("USER", user, "FOLDER", n.folder, "ADDRESS", n.address, "BACKEND", backend, "NOBODY", freeAddress(t)).Replace(`
USER
daemon off;
master_process off;
pid FOLDER/pid;
error_log FOLDER/error.log;
events { worker_connections 512; }
http {
	access_log off;
	client_body_temp_path FOLDER/body;
	proxy_temp_path FOLDER/proxy;
	fastcgi_temp_path FOLDER/fastcgi;
	uwsgi_temp_path FOLDER/uwsgi;
	scgi_temp_path FOLDER/scgi;
	client_max_body_size 16m;
	limit_req_zone all zone=slow:32k rate=1r/s;
	upstream backend { server BACKEND; keepalive 64; }
	map $http_upgrade $connection_upgrade { default upgrade; '' ''; }
	server {
		listen ADDRESS;
		proxy_http_version 1.1;
		proxy_set_header Upgrade $http_upgrade;
		proxy_set_header Connection $connection_upgrade;
		location / { proxy_pass http://backend; }
		location /busy { limit_req zone=slow; limit_req_status 503; add_header Retry-After 1 always; proxy_pass http://backend; }
		location /dead { proxy_pass http://NOBODY; }
		location /late { proxy_read_timeout 200ms; proxy_pass http://backend; }
	}
}
`)
	if err := os.WriteFile(filepath.Join(n.folder, "nginx.conf"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	n.start(t)
	return n
}

// start starts nginx, once more after stop, and waits until it listens.
func (n *nginx) start(t *testing.T) {
	t.Helper()
	command := exec.Command("nginx", "-p", n.folder, "-c", filepath.Join(n.folder, "nginx.conf"), "-e", filepath.Join(n.folder, "error.log"))
	command.Stderr = os.Stderr
	n.stop = start(t, command)
	eventually(t, "nginx listens", func() bool {
		c, err := net.Dial("tcp", n.address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
}

// eventually waits for what other processes do.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 2000 {
		if done() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("it never came about that " + what)
}

// serve serves on a free port, HTTP/1.1 and HTTP/2 without TLS, and returns the address.
func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	s := &http.Server{Handler: handler, Protocols: &protocols}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(l) // that it was closed
	}()
	t.Cleanup(func() { _ = s.Close(); <-ended })
	return l.Addr().String()
}

// python runs a script and returns its first line, once it has written one.
func python(t *testing.T, script string, args ...string) string {
	t.Helper()
	command := exec.Command("/usr/bin/python3", append([]string{"-c", script}, args...)...)
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, command)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal("python: ", err)
	}
	return strings.TrimSpace(line)
}
