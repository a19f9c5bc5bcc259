/** DynamoDB rejects an expression in doubled parentheses, so what goes in here comes without outer ones. */
export const all = (...conditions: string[]) => conditions.map((condition) => `(${condition})`).join(' AND ');
export const either = (...conditions: string[]) => conditions.map((condition) => `(${condition})`).join(' OR ');
