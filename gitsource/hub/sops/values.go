package sops

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// A File is a decrypted file.
type File struct {
	// Text is the plain text, with as many lines as the file.
	Text []byte
	// Values are the values that were encrypted, as text.
	Values []string
	// Key stands for the key of the file: what is hashed with it cannot be guessed from the hash.
	Key [sha256.Size]byte
}

// A decrypter decrypts the values that were encrypted together, in order.
type decrypter struct {
	key      []byte
	lastTime string
	wantMAC  string
	// onlyEncrypted says that the MAC covers the encrypted values only.
	onlyEncrypted bool
	mac           hash.Hash
	values        []string
	edits         []edit
}

// onlyEncryptedStart begins the MAC of files in which it covers the encrypted values only.
var onlyEncryptedStart = []byte{0x8a, 0x3f, 0xd2, 0xad, 0x54, 0xce, 0x66, 0x52, 0x7b, 0x10, 0x34, 0xf3, 0xd1, 0x47, 0xbe, 0xb, 0xb, 0x97, 0x5b, 0x3b, 0xf4, 0x4f, 0x72, 0xc6, 0xfd, 0xad, 0xec, 0x81, 0x76, 0xf2, 0x7d, 0x69}

// newDecrypter returns the decrypter of what was encrypted together, and the number of its recipients.
func newDecrypter(name string, metadata *yaml.Node, keys Keys) (d *decrypter, recipients int, err error) {
	all, err := recipientsOf(metadata)
	if err != nil {
		return nil, 0, err
	}
	key, err := dataKey(name, all, keys)
	if err != nil {
		return nil, 0, err
	}
	d = &decrypter{key: key, mac: sha512.New(), wantMAC: text(field(metadata, "mac")), onlyEncrypted: text(field(metadata, "mac_only_encrypted")) == "true"}
	if d.onlyEncrypted {
		d.mac.Write(onlyEncryptedStart)
	}
	modified, err := time.Parse(time.RFC3339, text(field(metadata, "lastmodified")))
	if err != nil {
		return nil, 0, errors.New("sops.lastmodified is not a time")
	}
	d.lastTime = modified.Format(time.RFC3339)
	return d, len(all), nil
}

// value decrypts a value and all below it. Items of lists have the path of the list, and comments do not count.
func (d *decrypter) value(n *yaml.Node, at []string, root bool) error {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if root && key == "sops" {
				continue
			}
			if err := d.value(n.Content[i+1], append(at, key), false); err != nil {
				return err
			}
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			if err := d.value(item, at, false); err != nil {
				return err
			}
		}
	case yaml.AliasNode:
		return errors.New("it has YAML aliases, which SOPS does not write")
	case yaml.ScalarNode:
		return d.scalar(n, at)
	}
	return nil
}

// maxPath is the maximum length of the path of an encrypted value.
const maxPath = 16 << 10

func (d *decrypter) scalar(n *yaml.Node, at []string) error {
	if !isEncrypted(n.Value) {
		if !d.onlyEncrypted {
			d.mac.Write(macBytes(n))
		}
		return nil
	}
	path := strings.Join(at, ":") + ":"
	if len(path) > maxPath { // each value is decrypted with its path
		return fmt.Errorf("line %d: the path of an encrypted value has more than %d bytes", n.Line, maxPath)
	}
	v, err := open(n.Value, d.key, path)
	if err != nil {
		return fmt.Errorf("line %d: %s: %w", n.Line, strings.Join(at, "."), err)
	}
	if v.kind == "comment" {
		d.edits = append(d.edits, edit{node: n, to: "''"})
		return nil
	}
	d.mac.Write([]byte(v.text))
	d.values = append(d.values, v.text)
	literal, err := v.literal()
	if err != nil {
		return fmt.Errorf("line %d: %s: %w", n.Line, strings.Join(at, "."), err)
	}
	d.edits = append(d.edits, edit{node: n, to: literal})
	return nil
}

// macBytes returns the bytes of a plain value that the MAC covers.
func macBytes(n *yaml.Node) []byte {
	var v any
	if n.Decode(&v) != nil {
		return []byte(n.Value)
	}
	switch v := v.(type) {
	case nil:
		return nil
	case bool:
		if v {
			return []byte("True")
		}
		return []byte("False")
	case float64:
		return strconv.AppendFloat(nil, v, 'f', -1, 64)
	case time.Time:
		b, _ := v.MarshalText()
		return b
	case string:
		return []byte(v)
	}
	return fmt.Append(nil, v)
}

func (d *decrypter) checkMAC() error {
	want, err := open(d.wantMAC, d.key, d.lastTime)
	if err != nil {
		return fmt.Errorf("sops.mac: %w", err)
	}
	if subtle.ConstantTimeCompare([]byte(want.text), fmt.Appendf(nil, "%X", d.mac.Sum(nil))) != 1 {
		return errors.New("its MAC does not match: somebody has changed it without SOPS; edit it with sops")
	}
	return nil
}

var encrypted = regexp.MustCompile(`^ENC\[AES256_GCM,data:(.+),iv:(.+),tag:(.+),type:(.+)\]$`)

func isEncrypted(value string) bool { return encrypted.MatchString(value) }

// A plain is a decrypted value.
type plain struct{ text, kind string }

// open decrypts one value. It fails if the value was encrypted at another path, which at is. Errors do not contain the value.
func open(value string, key []byte, at string) (plain, error) {
	m := encrypted.FindStringSubmatch(value)
	if m == nil {
		return plain{}, errors.New("it is not encrypted as SOPS does it")
	}
	var parts [3][]byte
	for i := range parts {
		var err error
		if parts[i], err = base64.StdEncoding.DecodeString(m[i+1]); err != nil {
			return plain{}, errors.New("it is damaged: not base64")
		}
	}
	data, iv, tag := parts[0], parts[1], parts[2]
	block, err := aes.NewCipher(key)
	if err != nil {
		return plain{}, err
	}
	gcm, err := cipher.NewGCMWithNonceSize(block, len(iv))
	if err != nil {
		return plain{}, err
	}
	opened, err := gcm.Open(nil, iv, append(data, tag...), []byte(at))
	if err != nil {
		return plain{}, errors.New("it was changed or moved to another field without SOPS, so that it cannot be decrypted; edit it with sops")
	}
	return plain{string(opened), m[4]}, nil
}

// literal returns the value as it is written in JSON and YAML, on one line.
func (p plain) literal() (string, error) {
	var err error
	switch p.kind {
	case "str", "bytes", "time":
		quoted, err := json.Marshal(p.text)
		return string(quoted), err
	case "int":
		_, err = strconv.ParseInt(p.text, 10, 64)
	case "float":
		_, err = strconv.ParseFloat(p.text, 64)
	case "bool":
		return strings.ToLower(p.text), nil
	default:
		return "", fmt.Errorf("its type %q is not known", p.kind)
	}
	if err != nil {
		return "", fmt.Errorf("it is not of its type %s", p.kind)
	}
	return p.text, nil
}

// An edit replaces the scalar of a node, or removes the metadata with its key.
type edit struct {
	node     *yaml.Node
	to       string
	metadata *yaml.Node
}
