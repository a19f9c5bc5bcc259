// Written from package.json by npm run contract.
export const VERSION = '0.3.0';
