//! Parses an expression. A level of the grammar is a method; the loosest binding comes first.

use super::error::Fault;
use super::syntax::{Function, Node, Operator, Term};
use super::token::{Token, tokens};
use crate::value::Value;

/// The deepest nesting of parentheses and signs.
const DEPTH_MAX: usize = 64;

pub(crate) fn parse(text: &str) -> Result<Node, Fault> {
    let mut parser = Parser { tokens: tokens(text)?, next: 0, end: text.len(), depth: 0 };
    let node = parser.or()?;
    match parser.tokens.get(parser.next) {
        None => Ok(node),
        Some((at, _)) => Err(Fault::new(*at, "the expression should end here, or an operator is missing")),
    }
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    next: usize,
    end: usize,
    depth: usize,
}

impl Parser {
    /// The byte of the next token.
    fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(self.end, |(at, _)| *at)
    }

    /// Takes the next token if it is this symbol or keyword.
    fn take(&mut self, word: &str) -> bool {
        let found = match self.tokens.get(self.next) {
            Some((_, Token::Symbol(symbol))) => *symbol == word,
            Some((_, Token::Name(name))) => name == word,
            _ => false,
        };
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<(), Fault> {
        let at = self.at();
        if self.take(symbol) { Ok(()) } else { Err(Fault::new(at, format!("`{symbol}` is missing here"))) }
    }

    /// A level whose operators bind to the left.
    fn left(
        &mut self,
        operators: &[(&str, Operator)],
        level: fn(&mut Self) -> Result<Node, Fault>,
    ) -> Result<Node, Fault> {
        let mut node = level(self)?;
        while let Some((_, operator)) = operators.iter().find(|(word, _)| self.take(word)) {
            let right = level(self)?;
            node = Node { at: node.at, term: Term::Binary(*operator, Box::new(node), Box::new(right)) };
        }
        Ok(node)
    }

    fn or(&mut self) -> Result<Node, Fault> {
        self.left(&[("or", Operator::Or)], Self::and)
    }

    fn and(&mut self) -> Result<Node, Fault> {
        self.left(&[("and", Operator::And)], Self::not)
    }

    fn not(&mut self) -> Result<Node, Fault> {
        let at = self.at();
        if self.take("not") {
            let inner = self.nested(Self::not)?;
            return Ok(Node { at, term: Term::Not(Box::new(inner)) });
        }
        self.comparison()
    }

    /// A comparison. `a < b < c` is an error.
    fn comparison(&mut self) -> Result<Node, Fault> {
        const OPERATORS: [(&str, Operator); 6] = [
            ("<=", Operator::LessOrEqual),
            (">=", Operator::GreaterOrEqual),
            ("==", Operator::Equal),
            ("!=", Operator::NotEqual),
            ("<", Operator::Less),
            (">", Operator::Greater),
        ];
        let left = self.sum()?;
        let Some((_, operator)) = OPERATORS.into_iter().find(|(word, _)| self.take(word)) else {
            return Ok(left);
        };
        let right = self.sum()?;
        let at = self.at();
        if OPERATORS.into_iter().any(|(word, _)| self.take(word)) {
            return Err(Fault::new(at, "two comparisons in a row: join them with `and`"));
        }
        Ok(Node { at: left.at, term: Term::Binary(operator, Box::new(left), Box::new(right)) })
    }

    fn sum(&mut self) -> Result<Node, Fault> {
        self.left(&[("+", Operator::Add), ("-", Operator::Subtract)], Self::product)
    }

    fn product(&mut self) -> Result<Node, Fault> {
        self.left(&[("*", Operator::Multiply), ("/", Operator::Divide)], Self::sign)
    }

    fn sign(&mut self) -> Result<Node, Fault> {
        let at = self.at();
        if self.take("-") {
            let inner = self.nested(Self::sign)?;
            return Ok(Node { at, term: Term::Negate(Box::new(inner)) });
        }
        self.primary()
    }

    fn primary(&mut self) -> Result<Node, Fault> {
        let at = self.at();
        if self.take("(") {
            let inner = self.nested(Self::or)?;
            self.expect(")")?;
            return Ok(inner);
        }
        let token = self.tokens.get(self.next).map(|(_, token)| token.clone());
        self.next += 1;
        let term = match token {
            Some(Token::Number(number)) => Term::Constant(Value::Number(number)),
            Some(Token::Text(text)) => Term::Constant(Value::Text(text)),
            Some(Token::Quoted(name)) => Term::Name(name),
            Some(Token::Name(name)) if name == "true" => Term::Constant(Value::Boolean(true)),
            Some(Token::Name(name)) if name == "false" => Term::Constant(Value::Boolean(false)),
            Some(Token::Name(name)) if self.take("(") => {
                let function = Function::named(&name);
                let function =
                    function.ok_or_else(|| Fault::new(at, format!("there is no function `{name}`")))?;
                Term::Call(function, self.arguments()?)
            }
            Some(Token::Name(name)) if !matches!(name.as_str(), "and" | "or" | "not") => Term::Name(name),
            _ => return Err(Fault::new(at, "a value is missing here")),
        };
        Ok(Node { at, term })
    }

    /// The arguments of a function, behind its opening parenthesis.
    fn arguments(&mut self) -> Result<Vec<Node>, Fault> {
        let mut arguments = vec![self.nested(Self::or)?];
        while self.take(",") {
            arguments.push(self.nested(Self::or)?);
        }
        self.expect(")")?;
        Ok(arguments)
    }

    fn nested(&mut self, level: fn(&mut Self) -> Result<Node, Fault>) -> Result<Node, Fault> {
        if self.depth == DEPTH_MAX {
            return Err(Fault::new(self.at(), format!("more than {DEPTH_MAX} levels")));
        }
        self.depth += 1;
        let node = level(self);
        self.depth -= 1;
        node
    }
}
