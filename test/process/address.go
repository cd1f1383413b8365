package process

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// FreeAddress finds an address on this machine that stays free while a program restarts: its
// port is not in the range for outgoing connections.
func FreeAddress() (string, error) {
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000))
		if l, err := net.Listen("tcp", address); err == nil {
			return address, l.Close()
		}
	}
	return "", errors.New("no port between 20000 and 30000 is free")
}
