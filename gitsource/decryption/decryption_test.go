package decryption

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/ProtonMail/go-crypto/openpgp"
	pgparmor "github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"google.golang.org/grpc"

	"github.com/gitfleet/gitfleet/gitsource/hub/sops"
	"github.com/gitfleet/gitfleet/test/sopsfile"
)

func identity(t *testing.T) *age.X25519Identity {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const plain = "kind: Secret\nstringData:\n  password: hunter2\n"

// A key of a directory decrypts files below its path only, and is used as soon as it is there.
func TestKeysOfADirectory(t *testing.T) {
	dir, ours := t.TempDir(), identity(t)
	text := []byte(sopsfile.Encrypt(plain, "^stringData$", ours.Recipient().String()))
	keys := New(Config{File: dir, Paths: []Path{{Path: "prod", Files: []string{"prod.txt"}}}})
	decrypts := func(file string) bool {
		t.Helper()
		f, err := sops.Decrypt(file, text, keys)
		if err != nil && !strings.Contains(err.Error(), ours.Recipient().String()) {
			t.Errorf("%v does not name the recipient", err)
		}
		return err == nil && strings.Contains(string(f.Text), "hunter2")
	}
	before := keys.Version()
	if decrypts("a.yaml") {
		t.Error("decrypted without a key")
	}
	write(t, filepath.Join(dir, "dev.txt"), "# created: today\n"+ours.String()+"\n")
	if decrypts("a.yaml") {
		t.Error("the keys have changed while a commit is loaded")
	}
	if keys.Version() == before {
		t.Error("the version is the same with a new key")
	}
	for file, want := range map[string]bool{"a.yaml": true, "production/a.yaml": true, "prod/a.yaml": false, "prod/x/a.yaml": false} {
		if decrypts(file) != want {
			t.Errorf("%s is decrypted: %t", file, !want)
		}
	}
	write(t, filepath.Join(dir, "prod.txt"), ours.String())
	keys.Version()
	if !decrypts("prod/a.yaml") {
		t.Error("prod/a.yaml is not decrypted with its key")
	}
	if err := os.Remove(filepath.Join(dir, "dev.txt")); err != nil {
		t.Fatal(err)
	}
	keys.Version()
	for _, file := range []string{"a.yaml", "production/a.yaml"} {
		if decrypts(file) {
			t.Errorf("a copy at %s is decrypted with the key of another path", file)
		}
	}
}

// Keys are not tried without end for one commit, whatever its files ask for.
func TestKeysAreTriedForAMinute(t *testing.T) {
	ours := identity(t)
	text := []byte(sopsfile.Encrypt(plain, "^stringData$", ours.Recipient().String()))
	keys := New(Config{Env: "KEY", Getenv: func(string) string { return ours.String() }})
	_ = keys.Version()
	keys.failedTime = 2 * maxFailedTime
	if _, err := sops.Decrypt("a.yaml", text, keys); !errors.Is(err, sops.ErrNoKey) || !strings.Contains(err.Error(), "without success") {
		t.Error(err)
	}
	_ = keys.Version() // the next commit
	if _, err := sops.Decrypt("a.yaml", text, keys); err != nil {
		t.Error(err)
	}
}

// An OpenPGP message that is compressed again and again ends at its limit.
func TestCompressedMessagesAreBounded(t *testing.T) {
	entity, err := openpgp.NewEntity("fleet", "", "fleet@example.com", &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA})
	if err != nil {
		t.Fatal(err)
	}
	config := &packet.Config{}
	compressed := func(content []byte) []byte {
		var b bytes.Buffer
		w, err := packet.SerializeCompressed(struct {
			io.Writer
			io.Closer
		}{&b, io.NopCloser(nil)}, packet.CompressionZLIB, &packet.CompressionConfig{Level: 9})
		if err == nil {
			_, err = w.Write(content)
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	sealed := func(content []byte) string {
		var b bytes.Buffer
		armored, err := pgparmor.Encode(&b, "PGP MESSAGE", nil)
		if err != nil {
			t.Fatal(err)
		}
		key := bytes.Repeat([]byte{7}, 32)
		to, _ := entity.EncryptionKey(time.Now())
		if err := packet.SerializeEncryptedKey(armored, to.PublicKey, packet.CipherAES256, key, config); err != nil {
			t.Fatal(err)
		}
		w, err := packet.SerializeSymmetricallyEncrypted(armored, packet.CipherAES256, false, packet.CipherSuite{}, key, config)
		if err == nil {
			_, err = w.Write(content)
		}
		if err = errors.Join(err, w.Close(), armored.Close()); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	var literal bytes.Buffer
	w, err := packet.SerializeLiteral(struct {
		io.Writer
		io.Closer
	}{&literal, io.NopCloser(nil)}, true, "", 0)
	if err == nil {
		_, err = w.Write(bytes.Repeat([]byte("k"), 32))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	ring := keyring{pgp: openpgp.EntityList{entity}}
	recipient := func(content []byte) sops.Recipient { return sops.Recipient{Kind: "pgp", Encrypted: sealed(content)} }
	if key := ring.decrypt(recipient(compressed(literal.Bytes()))); string(key) != strings.Repeat("k", 32) {
		t.Errorf("a compressed key is %q", key)
	}
	markers := bytes.Repeat([]byte("\xca\x03PGP"), 100<<10) // packets that are skipped
	if key := ring.decrypt(recipient(compressed(compressed(append(markers, literal.Bytes()...))))); key != nil {
		t.Errorf("half a megabyte before the key is read: %q", key)
	}
}

// A file that is no key is named, and nothing of it is quoted.
func TestWrongKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	write(t, file, "\nAGE-SECRET-KEY-1WRONG\n")
	ours := identity(t)
	keys := New(Config{File: file, Env: "KEY", Getenv: func(string) string { return "" }})
	text := []byte(sopsfile.Encrypt(plain, "^stringData$", ours.Recipient().String()))
	if _, err := sops.Decrypt("a.yaml", text, keys); err == nil || strings.Contains(err.Error(), "WRONG") || !strings.Contains(err.Error(), "key: line 2 is no age identity") {
		t.Error(err)
	}
	keys = New(Config{Env: "KEY", Getenv: func(string) string { return ours.String() }})
	if _, err := sops.Decrypt("a.yaml", text, keys); err != nil {
		t.Error(err)
	}
	if New(Config{}) != nil {
		t.Error("there are keys without a configuration")
	}
}

// A key service is asked for what is encrypted with a key of a cloud provider.
func TestKeyService(t *testing.T) {
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "sops"))
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan string, 1)
	server := grpc.NewServer(grpc.ForceServerCodec(raw{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(stream)
		var in []byte
		if err := stream.RecvMsg(&in); err != nil {
			return err
		}
		asked <- method + string(in)
		out := appendBytes(nil, 1, []byte(strings.Repeat("k", 32)))
		return stream.SendMsg(&out)
	}))
	defer server.Stop()
	go func() { _ = server.Serve(listener) }()
	keys := New(Config{Service: "unix://" + listener.Addr().String()})
	key, err := keys.DataKey("a.yaml", []sops.Recipient{
		{Kind: "age", Fields: map[string]string{"recipient": "age1"}},
		{Kind: "kms", Fields: map[string]string{"arn": "arn:aws:kms:1"}, Context: map[string]string{"team": "web"}, Encrypted: "sealed"},
	})
	if err != nil || string(key) != strings.Repeat("k", 32) {
		t.Fatalf("%q, %v", key, err)
	}
	if got, want := <-asked, "/KeyService/Decrypt\n\x1e\n\x1c\n\rarn:aws:kms:1\x1a\x0b\n\x04team\x12\x03web\x12\x06sealed"; got != want {
		t.Errorf("asked %q, want %q", got, want)
	}
	server.Stop()
	if _, err := (&service{address: "unix://" + listener.Addr().String()}).decrypt(context.Background(), sops.Recipient{Kind: "kms"}); err == nil {
		t.Error("a key without a key service")
	}
}

func TestParsePath(t *testing.T) {
	if p, err := ParsePath("clusters/prod/=a.txt,b.txt"); err != nil || p.Path != "clusters/prod" || len(p.Files) != 2 {
		t.Errorf("%+v, %v", p, err)
	}
	for _, text := range []string{"", "prod", "=a", "prod=", "prod=a,", "prod=../a", "prod=/etc/a"} {
		if _, err := ParsePath(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
