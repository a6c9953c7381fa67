//! The functions of the expression language.
