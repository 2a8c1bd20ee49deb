// Package dbusapi is what the D-Bus front and its clients have to agree on: names, object
// paths, the interfaces with their methods, signals and properties, and the errors.
//
// # Guarantees
//
//   - An object's path can be turned back into the id that it was made of, whatever octets
//     that has.
//   - What [Interfaces] lists is what is served: the front answers introspection from it, and
//     refuses a call whose arguments have other types.
//   - Each error of the vocabulary has one name, and that name gives the error back.
//
// It is pure.
package dbusapi
