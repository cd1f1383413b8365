// Package sopsfile encrypts files as SOPS does, for tests.
package sopsfile

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"
	"go.yaml.in/yaml/v3"
)

// Modified is the time at which the files were encrypted.
const Modified = "2026-05-04T10:00:00Z"

// Value encrypts a value of the field at a path such as stringData:password: with the key of a file.
func Value(key []byte, value, kind, at string) string {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err)
	}
	gcm, err := cipher.NewGCMWithNonceSize(block, 32)
	if err != nil {
		panic(err)
	}
	iv := sha256.Sum256([]byte(value + at)) // the same value stays the same text, as with sops edit
	out := gcm.Seal(nil, iv[:], []byte(value), []byte(at))
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("ENC[AES256_GCM,data:%s,iv:%s,tag:%s,type:%s]", b64(out[:len(out)-16]), b64(iv[:]), b64(out[len(out)-16:]), kind)
}

// MAC encrypts the MAC of values in their order.
func MAC(key []byte, values ...string) string {
	return Value(key, fmt.Sprintf("%X", sha512.Sum512([]byte(strings.Join(values, "")))), "str", Modified)
}

// Encrypt encrypts the values of a YAML document whose keys, or a key above them, match a pattern, for an age recipient.
func Encrypt(text, pattern, recipient string) string {
	key := bytes.Repeat([]byte{42}, 32)
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		panic(err)
	}
	e := &encryption{key: key, pattern: regexp.MustCompile(pattern)}
	e.value(doc.Content[0], "", false)
	var sealed bytes.Buffer
	to, err := age.ParseX25519Recipient(recipient)
	if err != nil {
		panic(err)
	}
	armored := armor.NewWriter(&sealed)
	w, err := age.Encrypt(armored, to)
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(key)
	_, _ = w.Close(), armored.Close()
	var metadata yaml.Node
	if err := metadata.Encode(map[string]any{
		"age":          []map[string]string{{"recipient": recipient, "enc": sealed.String()}},
		"lastmodified": Modified, "mac": MAC(key, e.plain...), "encrypted_regex": pattern, "version": "3.13.3",
	}); err != nil {
		panic(err)
	}
	doc.Content[0].Content = append(doc.Content[0].Content, &yaml.Node{Kind: yaml.ScalarNode, Value: "sops"}, &metadata)
	doc.Content[0].Style = 0
	out, err := yaml.Marshal(&doc)
	if err != nil {
		panic(err)
	}
	return string(out)
}

type encryption struct {
	key     []byte
	pattern *regexp.Regexp
	plain   []string
}

func (e *encryption) value(n *yaml.Node, at string, encrypt bool) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := n.Content[i].Value
			e.value(n.Content[i+1], at+name+":", encrypt || e.pattern.MatchString(name))
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			e.value(item, at, encrypt)
		}
	default:
		kind, text := "str", n.Value
		switch n.Tag {
		case "!!int":
			kind = "int"
		case "!!bool":
			kind, text = "bool", strings.ToUpper(text[:1])+text[1:]
		}
		e.plain = append(e.plain, text)
		if encrypt && text != "" {
			n.Value, n.Tag, n.Style = Value(e.key, text, kind, at), "!!str", 0
		}
	}
}
