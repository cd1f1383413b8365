package remote

import "strings"

// Hosts are the credentials for servers other than that of the repository, by HOST or HOST:PORT.
type Hosts map[string]Host

// A Host is how a server is accessed.
type Host struct {
	Auth
	// PlainHTTP allows http://, and has it used where an address does not say it.
	PlainHTTP bool
}

// Of returns how a server is accessed, which is HOST or HOST:PORT; false if nothing is known of it. An entry without a port is
// for all ports.
func (h Hosts) Of(server string) (Host, bool) {
	server = strings.ToLower(server)
	if host, known := h[server]; known {
		return host, true
	}
	name := server
	if at := strings.LastIndexByte(server, ':'); at >= 0 && !strings.HasSuffix(server, "]") {
		name = server[:at]
	}
	host, known := h[name]
	return host, known
}
