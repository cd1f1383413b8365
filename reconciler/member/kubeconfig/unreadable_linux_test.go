package kubeconfig

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// A cached kubeconfig that becomes unreadable is an error, as it would be after a restart.
func TestCachedCredentialsThatBecomeUnreadable(t *testing.T) {
	c := sources{dir: map[string]string{"east.kubeconfig": configOf("a", "a")}}.credentials(t).Cached()
	path := filepath.Join(c.Dir, "east.kubeconfig")
	if _, err := c.Config(t.Context(), "east", ""); err != nil {
		t.Fatal(err)
	}
	for file, mode := range map[string]os.FileMode{filepath.Dir(c.Dir): 0o755, path: 0} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
	}
	result := make(chan error)
	go func() {
		if os.Geteuid() == 0 { // root may read every file
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			if err := syscall.Setfsuid(65534); err != nil {
				result <- err
				return
			}
		}
		_, err := c.Config(t.Context(), "east", "")
		result <- err
	}()
	if err := <-result; err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("it says %v", err)
	}
}
