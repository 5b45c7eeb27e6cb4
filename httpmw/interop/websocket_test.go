package interop_test

import (
	"net/http/httputil"
	"net/url"
	"testing"
	"time"
)

// echoServer and echoClient use the package websockets of Python.
const echoServer = `
import asyncio, websockets
async def echo(socket, path=None):
    async for message in socket:
        await socket.send(message)
async def main():
    async with websockets.serve(echo, "127.0.0.1", 0, max_size=None) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.Future()
asyncio.run(main())
`

const echoClient = `
import asyncio, sys, websockets
async def main():
    async with websockets.connect(sys.argv[1], max_size=None) as socket:
        for message in ["text", "", b"\x00\xff", "x" * (1 << 20)]:
            await socket.send(message)
            assert await socket.recv() == message
        for n in range(200): # both directions at once
            await socket.send(str(n))
        for n in range(200):
            assert await socket.recv() == str(n)
        await (await socket.ping())
    print("ok", socket.close_code, flush=True)
asyncio.run(main())
`

// A WebSocket passes a ReverseProxy whose transport is a Transport, in both directions and
// to its orderly close. It is one attempt, whose permit comes back when it is closed.
func TestWebSocketThroughReverseProxy(t *testing.T) {
	needs(t)
	server := "127.0.0.1:" + python(t, echoServer)
	for name, target := range map[string]string{"to the server": server, "to nginx": startNginx(t, server).address} {
		_, transport, _ := client(t, time.Millisecond)
		proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: target})
		proxy.Transport = transport
		if got := python(t, echoClient, "ws://"+serve(t, proxy)); got != "ok 1000" {
			t.Errorf("%s: %s", name, got)
		}
		eventually(t, "the permit of the tunnel is back", func() bool { return transport.Stats().Hosts[0].Limiter.Ledger.InFlight == 0 })
		h := transport.Stats().Hosts[0].Hedging
		if h.Calls != 1 || h.Hedged != 0 {
			t.Errorf("%s: %d calls, %d hedged: want one that is not", name, h.Calls, h.Hedged)
		}
	}
}
